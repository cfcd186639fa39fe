package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// follower is a shared informer of the ConfigMaps of a world, and what happens to it.
type follower struct {
	t     *testing.T
	world *execWorld
	sync  cache.InformerSynced
	stop  func()

	mu       sync.Mutex
	added    map[string]int
	errors   []error // that the informer reported
	cut      []error // of answers that did not end as the API server ends them
	requests int
}

// follow starts an informer whose watches end every second, as those of the API server end after some minutes.
func (w *execWorld) follow(config *rest.Config) *follower {
	w.t.Helper()
	f := &follower{t: w.t, world: w, added: map[string]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watched{f, next} })
	client := need(kubernetes.NewForConfig(config))(w.t)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(w.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			if o.TimeoutSeconds != nil {
				o.TimeoutSeconds = new(int64(1))
			}
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	must(w.t, informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errors = append(f.errors, err)
	}))
	need(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.added[o.(*corev1.ConfigMap).Name]++
	}}))(w.t)
	f.sync = informer.HasSynced
	ctx, cancel := context.WithCancel(w.t.Context())
	f.stop = func() { cancel(); factory.Shutdown() }
	w.t.Cleanup(f.stop)
	factory.StartWithContext(ctx)
	return f
}

// has waits until the informer has seen these.
func (f *follower) has(names ...string) {
	f.t.Helper()
	eventually(f.t, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range names {
			if f.added[name] == 0 {
				return fmt.Errorf("the informer has not seen %s; its errors: %v", name, f.errors)
			}
		}
		return nil
	})
}

// awaitError waits until the informer has reported an error for which is returns true.
func (f *follower) awaitError(what string, is func(error) bool) {
	f.t.Helper()
	eventually(f.t, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.ContainsFunc(f.errors, is) {
			return fmt.Errorf("the informer did not report %s, but %v", what, f.errors)
		}
		return nil
	})
}

// saw ends the informer and checks that it got so many objects, and each once.
func (f *follower) saw(want int) {
	f.t.Helper()
	f.has(rootAuthority)
	f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, times := range f.added {
		if times != 1 {
			f.t.Errorf("%s was added %d times", name, times)
		}
	}
	if want++; len(f.added) != want { // with rootAuthority
		f.t.Errorf("%d objects seen, want %d", len(f.added), want)
	}
}

// ends ends the informer and checks how: with so many objects and runs of the program, so many requests that were answered with 401, and
// none that was made as another user.
func (f *follower) ends(program *exectest.Provider, user string, objects, runs, refused int) {
	f.t.Helper()
	f.saw(objects)
	ran(f.t, program, runs)
	if got := f.world.onlyAs(user); got != refused {
		f.t.Errorf("%d requests were answered with 401, want %d", got, refused)
	}
}

// asked returns how many requests the informer has made.
func (f *follower) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// undisturbed checks that the informer reported no error, and that no answer was cut.
func (f *follower) undisturbed() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errors) > 0 || len(f.cut) > 0 {
		f.t.Errorf("the informer reported %v; answers ended with %v", f.errors, f.cut)
	}
}

// watched sees what an informer gets.
type watched struct {
	*follower
	next http.RoundTripper
}

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests++
	w.mu.Unlock()
	response, err := w.next.RoundTrip(r)
	if err == nil {
		response.Body = &answer{response.Body, r.Context(), w.follower}
	}
	return response, err
}

// answer reports when it is cut.
type answer struct {
	io.ReadCloser
	ctx context.Context
	*follower
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && a.ctx.Err() == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.cut = append(a.cut, err)
	}
	return n, err
}

// execPool is a pool whose programs' output is dropped.
func execPool(t *testing.T, o execcredential.Options) *execcredential.Pool {
	t.Helper()
	o.Stderr = io.Discard
	pool := need(execcredential.NewPool(o))(t)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// ran waits until the program ran so often, and fails if it ran more often.
func ran(t *testing.T, p *exectest.Provider, want int) {
	t.Helper()
	eventually(t, func() error {
		switch got := p.Runs(); {
		case got > want:
			return fatal{fmt.Errorf("the program ran %d times, want %d", got, want)}
		case got < want:
			return fmt.Errorf("the program ran %d times, want %d", got, want)
		}
		return nil
	})
}

// An informer of a real API server sees everything, once, while its credential is replaced again and again: one run for each, and no
// watch is cut for it.
func TestExecCredentialInformerAcrossRotations(t *testing.T) {
	inTurn(t)
	const rotations = 4
	for _, kind := range []string{"token", "certificate"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
			clock := exectest.NewClock(time.Now()) // moved by hand, so that a credential expires at the test's command
			program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
				if kind == "token" {
					return w.answerToken("", clock.Now().Add(time.Hour))
				}
				return w.answerCertificate(time.Now().Add(24*time.Hour), clock.Now().Add(time.Hour))
			})
			pool := execPool(t, execcredential.Options{Clock: clock})
			f := w.follow(w.config(pool, program.Config()))
			w.add("first")
			f.has("first")
			for i := range rotations {
				ran(t, program, i+1)
				clock.Advance(time.Hour)
				w.add(fmt.Sprintf("expired-%d", i)) // the watch that has begun goes on
				f.has(fmt.Sprintf("expired-%d", i))
				ran(t, program, i+2) // for the next watch
				w.add(fmt.Sprintf("rotated-%d", i))
				f.has(fmt.Sprintf("rotated-%d", i))
				eventually(t, func() error {
					if used := len(w.used()); used != i+2 {
						return fmt.Errorf("%d credentials were used for watches, want %d", used, i+2)
					}
					return nil
				})
			}
			f.undisturbed()
			f.saw(1 + 2*rotations)
			ran(t, program, rotations+1)
			user := w.robot()
			if kind == "certificate" {
				user = w.person()
			}
			if refused := w.onlyAs(user); refused != 0 {
				t.Errorf("%d requests were answered with 401", refused)
			}
		})
	}
}

// A token that is bound to a Secret ends with it. The API server notices after some seconds, in which it remembers the token; the
// informer notices nothing.
func TestExecCredentialInformerAcrossRevocation(t *testing.T) {
	inTurn(t)
	w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
	secrets := w.admin.CoreV1().Secrets(w.namespace)
	for _, name := range []string{"bound-1", "bound-2"} {
		need(secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	}
	bound := make(chan string, 2)
	bound <- "bound-1"
	bound <- "bound-2"
	program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return w.answerToken(<-bound, time.Now().Add(time.Hour)) })
	f := w.follow(w.config(execPool(t, execcredential.Options{}), program.Config()))
	w.add("before")
	f.has("before")
	must(t, secrets.Delete(t.Context(), "bound-1", metav1.DeleteOptions{}))
	w.add("revoked")
	f.has("revoked")
	ran(t, program, 2)
	w.add("after")
	f.has("after")
	f.undisturbed()
	f.ends(program, w.robot(), 3, 2, 1) // one 401 for the revocation
}

// Certificates that are not to be used after some seconds, by the clocks of this machine.
func TestExecCredentialInformerAcrossExpiry(t *testing.T) {
	inTurn(t)
	t.Run("timestamp", func(t *testing.T) {
		t.Parallel()
		w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
		var mu sync.Mutex
		var expired []time.Time
		early := false
		program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			mu.Lock()
			defer mu.Unlock()
			early = early || len(expired) > 0 && time.Now().Before(expired[len(expired)-1])
			expired = append(expired, time.Now().Add(2*time.Second))
			// It holds longer than its timestamp, so that a slow machine is refused nothing.
			return w.answerCertificate(time.Now().Add(time.Hour), expired[len(expired)-1])
		})
		f := w.follow(w.config(execPool(t, execcredential.Options{}), program.Config()))
		const lives = 3
		for i := range lives {
			eventually(t, func() error {
				if program.Runs() <= i {
					return fmt.Errorf("%d runs", program.Runs())
				}
				return nil
			})
			w.add(fmt.Sprint("life-", i))
			f.has(fmt.Sprint("life-", i))
		}
		f.undisturbed()
		f.saw(lives)
		// The last one may have come when the informer ended, and was not used.
		if refused, used, runs := w.onlyAs(w.person()), len(w.used()), program.Runs(); refused != 0 || used != runs && used != runs-1 {
			t.Errorf("%d requests were answered with 401; %d runs for %d credentials", refused, runs, used)
		}
		if early {
			t.Error("the program ran before its certificate had expired")
		}
	})
	t.Run("server", func(t *testing.T) { // the timestamp promises more than the certificate holds
		t.Parallel()
		w := newExecWorld(t, shared.config(t), filepath.Join(shared.Dir, "devcluster"))
		lives := make(chan time.Duration, 2)
		lives <- 3 * time.Second
		lives <- time.Hour
		program := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return w.answerCertificate(time.Now().Add(<-lives), time.Now().Add(time.Hour))
		})
		f := w.follow(w.config(execPool(t, execcredential.Options{}), program.Config()))
		w.add("before")
		f.has("before")
		ran(t, program, 2)
		w.add("after")
		f.has("after")
		f.undisturbed()
		f.ends(program, w.person(), 2, 2, 1) // one 401 for the expiry
	})
}
