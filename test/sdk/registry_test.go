package sdk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/test/testkit"
)

// The password of Google Artifact Registry is an access token that Google makes of the identity's token, for the pool or for a service
// account; a token that Google refuses makes none, and the error has Google's reason.
func TestArtifactRegistry(t *testing.T) {
	w := newWorld(t)
	of := func(settings string) registry.Registry {
		t.Helper()
		config := testkit.Need(registry.Parse(fmt.Appendf(nil, `registries: [{images: europe-docker.pkg.dev/shop, audiences: ["//iam.googleapis.com/%[1]s", another], exchange: google-artifact-registry, settings: {provider: %[1]s, caFile: %[2]q%[3]s}}]`, googleProvider, w.authority, settings)))(t)
		found, _ := config.Of("europe-docker.pkg.dev/shop/images/cart")
		return found
	}
	token := func(change func(*issuer.Request)) registry.Token {
		asked := request(googleCloud())
		change(&asked)
		issued := w.issue(t, asked)
		return registry.Token{Value: issued.Token, Expires: time.Now().Add(time.Hour)}
	}
	for settings, principal := range map[string]string{"": "/subject/", ", serviceAccount: " + googleAccount: googleAccount} {
		got := testkit.Need(of(settings).Credentials(t.Context(), token(func(*issuer.Request) {}), time.Now))(t)
		granted, known := w.sts.Session(got.Password.Reveal())
		if !known || !strings.Contains(granted.Principal, principal) || got.Username != "oauth2accesstoken" || got.Expires.IsZero() {
			t.Errorf("%q: %+v for %+v, %v", settings, got, granted, known)
		}
	}
	got, err := of("").Credentials(t.Context(), token(func(r *issuer.Request) { r.Audiences = []string{"another"} }), time.Now)
	if err == nil || !got.Password.IsZero() || !strings.Contains(err.Error(), "https://sts.googleapis.com/v1/token answers 400: invalid_grant: The audience in ID Token") {
		t.Errorf("another audience: %v", err)
	}
	_, err = of(", serviceAccount: other@shop-project.iam.gserviceaccount.com").Credentials(t.Context(), token(func(*issuer.Request) {}), time.Now)
	if err == nil || !strings.Contains(err.Error(), "other@shop-project.iam.gserviceaccount.com:generateAccessToken answers 403") {
		t.Errorf("another service account: %v", err)
	}
}
