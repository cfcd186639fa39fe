//go:build cgo

package pkcs11

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/test/testkit"
)

// handshakes are made at once.
const handshakes = 32

// The API server takes the certificate of a key that signs in its token, with either version of TLS, however often it is called.
func TestClient(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t, kind, "key")
			enrol(t, token, "jane", "developers")
			for name, version := range map[string]uint16{"TLS 1.3": tls.VersionTLS13, "TLS 1.2": tls.VersionTLS12} {
				t.Run(name, func(t *testing.T) {
					provider := &counting{Provider: token}
					source := newPool(t, execcredential.Options{}).SourceOf(provider)
					client := &http.Client{Transport: source.Transport(base(t, version))}
					errs := make([]error, handshakes)
					var group sync.WaitGroup
					for i := range errs {
						group.Go(func() {
							user, err := whoami(t.Context(), client)
							if err == nil && (user.Username != "jane" || !slices.Contains(user.Groups, "developers")) {
								err = errors.New("the server saw " + user.Username)
							}
							errs[i] = err
						})
					}
					group.Wait()
					testkit.Must(t, errors.Join(errs...))
					if provider.runs.Load() != 1 || provider.signatures.Load() != handshakes {
						t.Errorf("the token was opened %d times, want once; it signed %d times, want %d", provider.runs.Load(), provider.signatures.Load(), handshakes)
					}
				})
			}
		})
	}
}

// The same with the clients of client-go.
func TestClientGo(t *testing.T) {
	token := newToken(t, "P-256", "key")
	enrol(t, token, "jane", "developers")
	source := newPool(t, execcredential.Options{}).SourceOf(token)
	config := testkit.Need(clientgo.ConfigFor(source, rest.AnonymousClientConfig(shared.admin)))(t)
	client := testkit.Need(kubernetes.NewForConfig(config))(t)
	review := testkit.Need(client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	if user := review.Status.UserInfo; user.Username != "jane" || !slices.Contains(user.Groups, "developers") {
		t.Errorf("the server saw %+v", user)
	}
}

// When a certificate ends, the next one may be that of another key in the same token.
func TestRotation(t *testing.T) {
	first := newToken(t, "P-256", "first")
	enrol(t, first, "jane")
	testkit.Must(t, addKey(first, "RSA 2048", "second"))
	second := *first
	second.Label, second.opened = "second", nil
	enrol(t, &second, "jane-2")
	t.Cleanup(func() { _ = second.Close() })

	clock := exectest.NewClock(time.Now())
	next := first
	source := newPool(t, execcredential.Options{Clock: clock}).SourceOf(execcredential.ProviderFunc(func(ctx context.Context) (*execcredential.Credential, error) {
		credential, err := next.Credential(ctx)
		if err != nil {
			return nil, err
		}
		return execcredential.NewCredential(execcredential.Material{Certificate: credential.Certificate(), Expires: clock.Now().Add(time.Minute)}, time.Now())
	}))
	kept := base(t, tls.VersionTLS13)
	kept.DisableKeepAlives = false
	client := &http.Client{Transport: source.Transport(kept)}
	sees := func(want string) {
		t.Helper()
		if user, err := whoami(t.Context(), client); err != nil || user.Username != want {
			t.Fatalf("the server saw %q, error %v, want %q", user.Username, err, want)
		}
	}
	sees("jane")
	next = &second
	sees("jane")
	clock.Advance(time.Minute)
	sees("jane-2")
	clock.Advance(time.Minute)
	sees("jane-2")
}
