package clientgo_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// beside runs f with a config that client-go's own plugin serves, and with one that this library serves with a clock that stands still.
func beside(t *testing.T, f func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config)) {
	t.Run("client-go", func(t *testing.T) { f(t, false, func(c *rest.Config) *rest.Config { return c }) })
	t.Run("execcredential", func(t *testing.T) {
		pool, _ := newPool(t, execcredential.Options{})
		f(t, true, func(c *rest.Config) *rest.Config { return adapted(t, pool, c) })
	})
}

// 50 requests one after the other, with a program whose output is past its expiry: client-go runs it for each, and this library serves
// each what the last run gave, without a wait.
func TestExpiredOutputOneAfterTheOther(t *testing.T) {
	beside(t, func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config) {
		server := newAPIServer(t)
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return exectest.Token("abc", time.Now().Add(-time.Hour))
		})
		client := clientOf(t, through(server.config(provider)))
		for range 50 {
			if _, status, err := get(client, server.URL); status != 200 {
				t.Fatalf("status %d, error %v", status, err)
			}
		}
		if runs := provider.Runs(); ours && runs != 1 || !ours && runs < 50 {
			t.Errorf("%d runs", runs)
		}
	})
}

// What the caller wraps around the connections of a config sees each request as it is sent. With this library it sees the second try of
// a request whose token was refused, too; and the certificate that belongs to the token reaches the server.
func TestWrappersOfTheCallerSeeTheToken(t *testing.T) {
	beside(t, func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config) {
		server := newAPIServer(t)
		server.accept(func(token, name string) bool { return token == "Bearer second" && name == "jane" })
		certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(1000*time.Hour))
		runs := 0
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			runs++
			answer := exectest.Certificate(certificate, key, time.Time{})
			answer.Status.Token = map[bool]string{true: "first", false: "second"}[runs == 1]
			return answer
		})
		var saw []string
		config := server.config(provider)
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
				saw = append(saw, strings.Join(r.Header["Authorization"], ","))
				return rt.RoundTrip(r)
			})
		})
		client := clientOf(t, through(config))
		if ours {
			if body, status, err := get(client, server.URL); status != 200 {
				t.Errorf("body %q, status %d, error %v", body, status, err)
			}
		} else {
			for _, want := range []int{401, 200} { // client-go does not send a request again
				if _, status, err := get(client, server.URL); status != want {
					t.Errorf("status %d, error %v", status, err)
				}
			}
		}
		if want := []string{"Bearer first", "Bearer second"}; !slices.Equal(saw, want) {
			t.Errorf("the wrapper saw %q, want %q", saw, want)
		}
	})
}

// A certificate without a token reaches the server through the caller's wrappers as well, and a new one over new connections.
func TestCertificateBehindWrappersOfTheCaller(t *testing.T) {
	server := newAPIServer(t)
	names := []string{"one", "two"}
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		certificate, key := server.authority.Issue(names[0], start.Add(-time.Hour), start.Add(1000*time.Hour))
		names = names[1:]
		return exectest.Certificate(certificate, key, start.Add(time.Hour))
	})
	pool, clock := newPool(t, execcredential.Options{})
	config := server.config(provider)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(r *http.Request) (*http.Response, error) { return rt.RoundTrip(r.Clone(r.Context())) })
	})
	client := clientOf(t, adapted(t, pool, config))
	for _, want := range []string{"one", "one", "two"} {
		if body, status, err := get(client, server.URL); status != 200 || !strings.Contains(body, want) {
			t.Errorf("body %q, status %d, error %v, want %s", body, status, err, want)
		}
		clock.Advance(31 * time.Minute)
	}
}
