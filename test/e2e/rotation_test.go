package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/client-go/rest"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// quickly are the arguments of a plane whose keys rotate as one watches: a key is published for 47 seconds before it signs,
// and signs for 48. Documents may be kept for 35 seconds, so that the other cluster, which fetches them again no sooner than
// 30 seconds before that is over, does keep them.
var quickly = []string{
	"--arg", "controller=--key-rotation-period=48s", "--arg", "controller=--key-publish-period=35s",
	"--arg", "controller=--max-age=35s", "--arg", "discovery=--max-age=35s",
	"--arg", "controller=--keys-staleness=10s", "--arg", "controller=--keys-refresh-interval=1s", "--arg", "apiserver=--keys-refresh-interval=1s",
	"--arg", "controller=--clock-skew=1s", "--arg", "controller=--key-leeway=1s", "--arg", "controller=--token-max-duration=20s",
}

// rotations is how often keys are rotated under the eyes of the relying parties: five times each of two algorithms.
const rotations = 10

// stream issues tokens and shows each to relying parties, at once and again when it is about to expire.
type stream struct {
	plane     plane
	namespace string
	cluster   *rest.Config
	library   *oidc.IDTokenVerifier
	client    *http.Client

	mu       sync.Mutex
	accepted int
	keys     map[string]bool
	refused  []string
}

func TestPlaneTenRotationsWithoutOneRefusedToken(t *testing.T) {
	first(t, ofPlane+ofCluster, 6)
	p := newPlane(t, quickly...)
	namespace := p.namespace(t)
	for _, target := range []string{"kubernetes", "aws"} { // RS256, ES256
		p.create(t, namespace, target, target, "second-cluster")
	}
	ctx := oidc.ClientContext(t.Context(), p.publicClient(t))
	provider := need(oidc.NewProvider(ctx, p.Issuer))(t)
	client := need(rest.HTTPClientFor(p.config(t)))(t)
	s := &stream{
		plane: p, namespace: namespace, cluster: p.secondCluster(t), client: client, keys: map[string]bool{},
		library: provider.Verifier(&oidc.Config{ClientID: "second-cluster", SupportedSigningAlgs: []string{"RS256", "ES256"}}),
	}
	running, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	for _, target := range []string{"kubernetes", "aws"} {
		workers.Go(func() { s.run(running, t, target) })
	}
	// Processes die at any time, and nothing of it may be seen but a pause.
	killed, done := map[int]string{3: "controller", 6: "apiserver"}, 0
	waitFor(t, time.Hour, func() error {
		if err := s.failure(); err != nil {
			return err
		}
		done = max(done, p.activations(t)) // the history is bounded
		for after, name := range killed {
			if done >= after {
				p.kill(t, name)
				delete(killed, after)
			}
		}
		if seen := s.seen(); done < rotations || seen < rotations {
			return fmt.Errorf("%d keys were activated, and tokens of %d keys seen, %d are waited for", done, seen, rotations)
		}
		return nil
	})
	stop()
	workers.Wait()
	must(t, s.failure())
	t.Logf("tokens of %d keys were accepted by both relying parties, %d times", len(s.keys), s.accepted)
}

// run issues a token a few times a second until ctx is done.
func (s *stream) run(ctx context.Context, t *testing.T, target string) {
	var checks sync.WaitGroup
	defer checks.Wait()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		token, expires, err := s.issue(ctx, target)
		if err != nil {
			continue // the server was killed, or is not back yet: a token that was not issued is not refused
		}
		header, _ := claims(t, token)
		checks.Go(func() {
			s.check(ctx, token, expires, header.KeyID, "at once")
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(expires) - 3*time.Second):
				s.check(ctx, token, expires, header.KeyID, "shortly before its expiry")
			}
		})
	}
}

func (s *stream) issue(ctx context.Context, target string) (string, time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, "POST", s.plane.APIServer+tokenPath(s.namespace, target), strings.NewReader(tokenRequest(`{}`)))
	if err != nil {
		return "", time.Time{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(request)
	if err != nil {
		return "", time.Time{}, err
	}
	defer answer.Body.Close()
	var issued authenticationv1alpha1.TokenRequest
	if answer.StatusCode != http.StatusCreated {
		return "", time.Time{}, fmt.Errorf("status %d", answer.StatusCode)
	}
	err = json.NewDecoder(answer.Body).Decode(&issued)
	return issued.Status.Token, issued.Status.ExpirationTimestamp.Time, err
}

func (s *stream) check(ctx context.Context, token string, expires time.Time, key, when string) {
	_, clusterErr := bearer(ctx, s.cluster, token)
	_, libraryErr := s.library.Verify(ctx, token)
	if ctx.Err() != nil || !time.Now().Before(expires) { // on a machine that stood still, it is refused with right
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = true
	if clusterErr != nil || libraryErr != nil {
		s.refused = append(s.refused, fmt.Sprintf("a token of key %s, %s: the other cluster returns %v, the library %v", key, when, clusterErr, libraryErr))
		return
	}
	s.accepted++
}

// seen is of how many keys tokens were checked.
func (s *stream) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) > 0 {
		return fatal{fmt.Errorf("%d valid tokens were refused, the first is %s", len(s.refused), s.refused[0])}
	}
	return nil
}

// activations counts the keys that became active since the plane was set up.
func (p plane) activations(t *testing.T) int {
	t.Helper()
	var ring v1alpha1.KeyRing
	got := do(t, p.config(t), "GET", "/apis/identity.credence.dev/v1alpha1/keyrings/workload-identities", "", "")
	if got.Code != 200 {
		return 0 // the server was killed
	}
	must(t, json.Unmarshal(got.Body, &ring))
	n := 0
	for _, event := range ring.Status.History {
		if event.Event == "activated" {
			n++
		}
	}
	if len(ring.Status.Keys) > 8 {
		t.Errorf("%d keys are published, more than 8", len(ring.Status.Keys))
	}
	return n
}

// kill ends a component as the kernel does when memory is short. One that has just ended is killed when it runs again.
func (p plane) kill(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		now, err := readPlane(p.Dir)
		if err != nil {
			return err
		}
		for _, component := range now.Components {
			if component.Name == name {
				return syscall.Kill(component.PID, syscall.SIGKILL)
			}
		}
		return fmt.Errorf("no component %s runs", name)
	})
}

// keyRing returns the plane's KeyRing.
func (p plane) keyRing(t *testing.T) v1alpha1.KeyRing {
	t.Helper()
	var ring v1alpha1.KeyRing
	got := do(t, p.config(t), "GET", "/apis/identity.credence.dev/v1alpha1/keyrings/workload-identities", "", "")
	if got.Code != 200 {
		t.Fatalf("get KeyRing: %d %s", got.Code, got.Body)
	}
	must(t, json.Unmarshal(got.Body, &ring))
	return ring
}
