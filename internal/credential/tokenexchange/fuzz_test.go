package tokenexchange

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// Whatever a server answers, it is a token or an error, and no error shows what was sent.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"access_token":"t","issued_token_type":"urn:ietf:params:oauth:token-type:jwt","token_type":"N_A","expires_in":"60"}`))
	f.Add(200, []byte(`{"access_token":"e30.eyJleHAiOjF9.x","token_type":"Bearer","expires_in":1e308}`))
	f.Add(400, []byte(`{"error":"invalid_grant","error_description":"no secret-that-was-sent"}`))
	f.Add(302, []byte(`secret-that-was-sent`))
	started := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status != 200 {
			err := refusal(status, body, credential.NewSecret("secret-that-was-sent"))
			if err == nil || strings.Contains(err.Error(), "secret-that-was-sent") || strings.ContainsAny(err.Error(), "\x1b\r\n") {
				t.Errorf("error %v", err)
			}
			return
		}
		got, err := (&Source{}).read(body, started)
		if (err == nil) == got.Token.IsZero() {
			t.Errorf("token %v, error %v", got, err)
		}
		if err == nil && len(body) < 1000 && !got.Expires.IsZero() && got.Expires.Year() > 9999 {
			t.Errorf("expires %s", got.Expires)
		}
	})
}
