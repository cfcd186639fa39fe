// Package trust is what the target systems write the other side of an identity with: the configuration by which a system accepts
// the identity's tokens. In goes an identity with its issuer, subject, audiences and providerConfig, or values of it; out come
// faults that no system should trust, and text for a person to read and run: commands for a POSIX shell, or Terraform. No value
// can leave its quotes. It knows no target system, makes no requests, and runs nothing.
package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity has the fields of a WorkloadIdentity that the other side needs.
type Identity struct {
	Namespace, Name string
	// Type is spec.targetSystem.type.
	Type string
	// Issuer and Subject are those of the status: the claims iss and sub, byte for byte.
	Issuer, Subject string
	// Audiences are the aud claim.
	Audiences []string
	// ProviderConfig is the JSON of spec.targetSystem.providerConfig, or nil.
	ProviderConfig []byte
	// Bearer is whose tokens are trusted.
	Bearer Bearer
	// Username is that of the service account in whose name the tokens are; empty: the system knows them by their subject.
	Username string
}

// Form is how the other side is written.
type Form string

// The forms.
const (
	Commands  Form = "commands"
	Terraform Form = "terraform"
	// Provider is Terraform, too: the part that all identities of the issuer share. Terraform has the rest.
	Provider Form = "provider"
)

// Side is how a system is configured to trust an identity. The texts are without a header; errors are faults of the identity.
// A system without Commands has no side that is configured here.
type Side struct {
	// Any reports whether the system verifies any token, so that identities of a type without a system of its own may be
	// trusted there. The others are clouds, which fetch keys over the internet.
	Any bool
	// Bearers reports whether the system looks at claims other than issuer, subject and audience.
	Bearers             bool
	Commands, Terraform func(Identity) (string, error)
	// Provider is nil where identities share nothing.
	Provider func(Identity) (string, error)
}

// Writer returns how a part of the other side is written of what a system derives of the identity first.
func Writer[Relation any](of func(Identity) (Relation, error), write func(Identity, Relation) string) func(Identity) (string, error) {
	return func(i Identity) (string, error) {
		relation, err := of(i)
		if err != nil {
			return "", err
		}
		return write(i, relation), nil
	}
}

// Check refuses identities that no system should trust.
func (i Identity) Check() error {
	if i.Issuer == "" || i.Subject == "" {
		return errors.New("its status has no issuer or no sub, so that it is not known what to trust: see whether Credence's API server runs")
	}
	if len(i.Audiences) == 0 {
		return errors.New("it has no audience in spec.audiences, and a system that does not check the audience accepts tokens meant for others")
	}
	address, err := url.Parse(i.Issuer)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("its issuer %q is not an https URL", i.Issuer)
	}
	for what, values := range map[string][]string{"issuer": {i.Issuer}, "subject": {i.Subject}, "name": {i.Namespace, i.Name}, "username": {i.Username}, "bearer": {i.Bearer.Cluster, i.Bearer.Namespace, i.Bearer.Account, i.Bearer.Object.Claim, i.Bearer.Object.UID, i.Bearer.Object.Title}, "audience": i.Audiences} {
		for _, value := range values {
			if r, ok := invisible(value); ok {
				return fmt.Errorf("its %s %q holds a character that does not show (%U): the pasted text would differ from the shown one", what, value, r)
			}
		}
	}
	if strings.ContainsAny(i.Subject, "*?") {
		return fmt.Errorf("its subject %q holds a wildcard", i.Subject)
	}
	return nil
}

// invisible finds a character that a terminal does not show as itself.
func invisible(s string) (rune, bool) {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return r, true
		}
	}
	return 0, false
}

// Reach is a warning of issuers that no cloud could fetch keys from, or empty.
func Reach(issuer string) string {
	address, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	host := address.Hostname()
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()), host == "localhost", strings.HasSuffix(host, ".localhost"), strings.HasSuffix(host, ".local"), strings.HasSuffix(host, ".svc"), strings.HasSuffix(host, ".internal"):
		return "The issuer " + address.Host + " can't be reached from the internet: a cloud can't fetch its keys, and refuses its tokens."
	case address.Port() != "":
		return "The issuer names port " + address.Port() + ": clouds fetch keys from port 443 alone, AWS takes no issuer with a port."
	}
	return ""
}

// Label is a name for what is created on the other side, of letters, digits, - and _; no two identities share it, as names
// of Kubernetes have no underscore and namespaces have no dot.
func (i Identity) Label() string {
	return strings.ReplaceAll(i.Namespace+"_"+i.Name, ".", "_")
}
