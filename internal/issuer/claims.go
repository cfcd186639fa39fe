package issuer

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/credence-id/credence/internal/identity"
)

// claims is the payload of a token (GEP-26, "Gardener as OIDC Token Issuer"; RFC 7519, section 4.1). Times are seconds
// since 1970.
type claims struct {
	Issuer     identity.Issuer   `json:"iss"`
	Subject    identity.Subject  `json:"sub"`
	Audiences  []string          `json:"aud"`
	IssuedAt   int64             `json:"iat"`
	NotBefore  int64             `json:"nbf"`
	Expiry     int64             `json:"exp"`
	ID         string            `json:"jti"`
	Gardener   gardenerClaims    `json:"gardener.cloud"`
	Kubernetes *kubernetesClaims `json:"kubernetes.io,omitempty"`
	Credence   *credenceClaims   `json:"identity.credence.dev,omitempty"`
}

type credenceClaims struct {
	Username string `json:"username"`
}

type gardenerClaims struct {
	WorkloadIdentity objectClaims  `json:"workloadIdentity"`
	Garden           *gardenClaims `json:"garden,omitempty"`
}

type objectClaims struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

type gardenClaims struct {
	ID string `json:"id"`
}

// kubernetesClaims has the shape of Kubernetes' own service-account tokens, so that what reads those reads these.
type kubernetesClaims struct {
	Namespace      string               `json:"namespace"`
	ServiceAccount serviceAccountClaims `json:"serviceaccount"`
}

type serviceAccountClaims struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// setContext adds the claim of the context; each kind has its own.
func (c *claims) setContext(context *Context) {
	if context == nil {
		return
	}
	if context.Username != "" {
		c.Credence = &credenceClaims{Username: context.Username}
	}
	if account := context.ServiceAccount; account != nil {
		c.Kubernetes = &kubernetesClaims{
			Namespace:      account.Namespace,
			ServiceAccount: serviceAccountClaims{Name: account.Name, UID: account.UID},
		}
	}
}

// newTokenID returns a random UUID, version 4 (RFC 9562, section 5.4).
func newTokenID(random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("draw a token ID: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text), nil
}
