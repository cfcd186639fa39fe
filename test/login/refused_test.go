package login_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// number is that of a token of the provider.
func number(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	var claims struct{ Number string }
	err := errors.New("it has no payload")
	if len(parts) == 3 {
		var payload []byte
		if payload, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			err = json.Unmarshal(payload, &claims)
		}
	}
	if err != nil || claims.Number == "" {
		t.Fatalf("the token has no number: %v", err)
	}
	return claims.Number
}

// token is what the person's clients are served.
func (d *workstation) token(client string) string {
	d.t.Helper()
	var answer struct{ Status struct{ Token string } }
	testkit.Must(d.t, json.Unmarshal([]byte(d.must("credence-credential", d.login(client)...)), &answer))
	return answer.Status.Token
}

// A token that the API server refuses is replaced, without a browser: the kubectl that learns of it may fail, the next does not.
func TestKubectlGetsAnotherTokenForOneThatIsRefused(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	d.must("credence", append([]string{"login"}, d.login("kubernetes")...)...)
	refused := d.token("kubernetes")
	d.cluster.refuse(t, number(t, refused))

	if got := d.whoami(); got.code == 0 || !strings.Contains(got.err, "Unauthorized") {
		t.Errorf("kubectl with a token that is refused: %s", got)
	}
	d.wantAlice()
	if d.token("kubernetes") == refused {
		t.Error("the token that was refused is still served")
	}
	if n := d.provider.since(t, before, "refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	d.wantLogins(before, 1)
}
