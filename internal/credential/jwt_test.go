package credential_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential"
)

func TestUnverified(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name, payload string
		want          credential.Claims
		not           bool
	}{
		{name: "all", payload: `{"iss":"i","sub":"s","iat":1777892400,"exp":1777896000.9}`,
			want: credential.Claims{Issuer: "i", Subject: "s", IssuedAt: at.Add(-time.Hour), Expires: at}},
		{name: "none", payload: `{}`},
		{name: "wrong types", payload: `{"iss":1,"sub":null,"iat":"1777896000","exp":{}}`},
		{name: "no time", payload: `{"iat":-1,"exp":1e300}`},
		{name: "text", payload: `text`, not: true},
		{name: "array", payload: `[1]`, not: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(c.payload)) + ".sig"
			got, ok := credential.Unverified(credential.NewSecret(token))
			if diff := cmp.Diff(c.want, got); diff != "" || ok == c.not {
				t.Errorf("a token: %v; claims (-want +got):\n%s", ok, diff)
			}
		})
	}
	for _, token := range []string{"", "opaque", "a.b", "e30.e30.a.b", "e30.!.x"} {
		if _, ok := credential.Unverified(credential.NewSecret(token)); ok {
			t.Errorf("%q is taken for a token with claims", token)
		}
	}
}
