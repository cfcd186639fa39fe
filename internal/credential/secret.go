package credential

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a token or a private key. However it is printed, formatted, marshalled or logged it shows as [redacted]; Reveal
// is the only way to its text.
type Secret struct {
	// A pointer, because fmt calls no methods on values in unexported fields: it would print a string there, but prints of
	// a pointer only the address.
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the text. Call it only where the secret is given to its client, or stored.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether s holds no text.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal reports whether both have the same text, also to go-cmp.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, so that JSON shows nothing either.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
