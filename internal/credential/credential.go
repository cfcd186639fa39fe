package credential

import "time"

// Credential is what a client presents: a token, or a certificate with its key, or all of them.
type Credential struct {
	// Token is for the header Authorization: Bearer.
	Token Secret
	// CertificatePEM is a chain of certificates, the client's own first.
	CertificatePEM []byte
	KeyPEM         Secret
	// Expires is the end of the credential; zero if it is unknown. A credential without it is served to the processes that
	// waited for it, and not stored.
	Expires time.Time
}
