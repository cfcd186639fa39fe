package credential

import "github.com/credence-id/credence/internal/identity"

// Secret is a token or a private key. However it is printed, formatted, marshalled or logged it shows as [redacted]; Reveal
// is the only way to its text.
type Secret struct{ identity.Token }

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{identity.NewToken(text)} }

// Equal reports whether both have the same text, also to go-cmp.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }
