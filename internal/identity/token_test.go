package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

func TestTokenShowsItsTextToRevealOnly(t *testing.T) {
	const text = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	token := NewToken(text)
	if got := token.Reveal(); got != text {
		t.Errorf("reveals %q, want %q", got, text)
	}

	type inside struct{ Token Token }
	type hidden struct{ token Token }
	var logged, loggedJSON bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "token", token, "in", inside{token}, "hidden", hidden{token})
	slog.New(slog.NewJSONHandler(&loggedJSON, nil)).Info("m", "token", token, "in", inside{token}, "hidden", hidden{token})
	asJSON := testkit.Need(json.Marshal(map[string]any{"token": token, "pointer": &token, "in": inside{token}}))(t)
	outputs := []string{logged.String(), loggedJSON.String(), string(asJSON), fmt.Sprint(token), fmt.Errorf("x: %v", token).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10.3s"} {
		for _, value := range []any{token, &token, inside{token}, []Token{token}, map[string]Token{"t": token}} {
			output := fmt.Sprintf(verb, value)
			if !strings.Contains(output, "[redacted]") && !strings.HasPrefix(output, "0x") {
				t.Errorf("%s of %T shows %q, want [redacted]", verb, value, output)
			}
			outputs = append(outputs, output)
		}
		outputs = append(outputs, fmt.Sprintf(verb, hidden{token}), fmt.Sprintf(verb, &hidden{token}))
	}
	hex := fmt.Sprintf("%x", text)
	for _, output := range outputs {
		if strings.Contains(output, "eyJ") || strings.Contains(output, hex) {
			t.Errorf("the token is shown: %s", output)
		}
	}
}

func TestZeroToken(t *testing.T) {
	var none Token
	if !none.IsZero() || !NewToken("").IsZero() || none.Reveal() != "" {
		t.Error("the zero token holds something")
	}
	if NewToken("x").IsZero() {
		t.Error("a token with a text is zero")
	}
}
