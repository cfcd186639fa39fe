package identity

import (
	"fmt"
	"log/slog"
)

// Token is a signed JSON Web Token. However it is printed, formatted, marshalled or logged it shows as [redacted];
// Reveal is the only way to its text.
type Token struct {
	// A pointer, because fmt calls no methods on values in unexported fields: it would print a string there, but prints
	// of a pointer only the address.
	text *string
}

const redacted = "[redacted]"

// NewToken wraps the compact serialization of a token.
func NewToken(text string) Token { return Token{text: &text} }

// Reveal returns the compact serialization. Call it only where the token is given to its requester.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// IsZero reports whether t holds no token.
func (t Token) IsZero() bool { return t.Reveal() == "" }

// String implements fmt.Stringer.
func (Token) String() string { return redacted }

// Format implements fmt.Formatter for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, so that JSON and YAML show nothing either.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
