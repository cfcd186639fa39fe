package oidc

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// Text that looks like a token is removed from all terminal output: an address with it would not be the one to open.
func TestNoAttemptLooksLikeAToken(t *testing.T) {
	token, err := base64.RawURLEncoding.DecodeString("xxxx" + "eyJhbGciOiJub25lIn0" + strings.Repeat("x", 20))
	testkit.Must(t, err)
	zeros := make([]byte, 32)
	a, err := newAttempt(io.MultiReader(
		bytes.NewReader(token[:32]), bytes.NewReader(zeros), bytes.NewReader(zeros), // such a state
		bytes.NewReader(zeros), bytes.NewReader(token[:32]), bytes.NewReader(zeros), // such a nonce
		bytes.NewReader(make([]byte, 96)),
	))
	testkit.Must(t, err)
	if shown := a.state + " " + a.nonce; strings.Contains(shown, "eyJ") {
		t.Error(shown)
	}
}
