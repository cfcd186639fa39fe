package clientgo_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// seen counts how often each ConfigMap was added.
type seen struct {
	mu    sync.Mutex
	added map[string]int
}

func (s *seen) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added[name] > 0
}

func inform(t *testing.T, c *rest.Config) *seen {
	t.Helper()
	clientset := need(kubernetes.NewForConfig(c))(t)
	s := &seen{added: map[string]int{}}
	factory := informers.NewSharedInformerFactory(clientset, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	need(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		s.mu.Lock()
		s.added[o.(*corev1.ConfigMap).Name]++
		s.mu.Unlock()
	}}))(t)
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	return s
}

// A shared informer sees everything, once, while its certificate and token are rotated ten times: its watch goes on over the old
// connection, and begins again with the new credential.
func TestInformerAcrossRotations(t *testing.T) {
	server := newAPIServer(t)
	var run atomic.Int32
	pool, clock := newPool(t, execcredential.Options{})
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		n := run.Add(1)
		certificate, key := server.authority.Issue(fmt.Sprintf("jane-%d", n), start.Add(-time.Hour), start.Add(1000*time.Hour))
		answer := exectest.Certificate(certificate, key, clock.Now().Add(time.Hour))
		answer.Status.Token = fmt.Sprintf("token-%d", n)
		return answer
	})
	config := adapted(t, pool, server.config(provider))
	server.accept(func(token, name string) bool {
		return token != "" && token[len("Bearer token-"):] == name[len("jane-"):]
	})
	s := inform(t, config)
	clientset := need(kubernetes.NewForConfig(config))(t)
	for i := range 10 {
		eventually(t, "the watch", func() bool { return server.watching() == 1 })
		clock.Advance(time.Hour) // the credential has expired, the watch has not
		name := fmt.Sprintf("on-old-%d", i)
		server.add(name)
		eventually(t, name, func() bool { return s.has(name) })
		if _, err := clientset.RESTClient().Get().AbsPath("/version").DoRaw(t.Context()); err != nil { // rotates
			t.Fatal(err)
		}
		name = fmt.Sprintf("after-rotation-%d", i)
		server.add(name)
		eventually(t, name, func() bool { return s.has(name) })
		server.breakWatches() // the server ends watches of expired credentials
		name = fmt.Sprintf("on-new-%d", i)
		server.add(name)
		eventually(t, name, func() bool { return s.has(name) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.added {
		if n != 1 {
			t.Errorf("%s was added %d times", name, n)
		}
	}
	if len(s.added) != 30 || server.refused.Load() != 0 {
		t.Errorf("%d of 30 seen, %d requests refused", len(s.added), server.refused.Load())
	}
	if got := provider.Runs(); got != 11 {
		t.Errorf("%d runs for 10 rotations", got)
	}
}

// While the provider fails, and while the server refuses the credential, the provider is not run in a hot loop; afterwards the
// informer goes on by itself.
func TestInformerAcrossOutages(t *testing.T) {
	server := newAPIServer(t)
	var broken atomic.Bool
	var run atomic.Int32
	failed := make(chan bool, 10)
	pool, clock := newPool(t, execcredential.Options{OnRun: func(r execcredential.Run) {
		if r.Err != nil {
			failed <- true
		}
	}})
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		if broken.Load() {
			return exectest.Answer{ExitCode: 1, Stderr: "no network"}
		}
		return exectest.Token(fmt.Sprintf("token-%d", run.Add(1)), clock.Now().Add(time.Hour))
	})
	s := inform(t, adapted(t, pool, server.config(provider)))
	eventually(t, "the watch", func() bool { return server.watching() == 1 })

	broken.Store(true)
	clock.Advance(time.Hour)
	server.breakWatches()
	server.add("in-the-outage")
	<-failed
	broken.Store(false)
	clock.Advance(time.Minute)
	eventually(t, "what came in the outage", func() bool { return s.has("in-the-outage") })
	if got := provider.Runs(); got != 3 {
		t.Errorf("%d runs for one outage", got)
	}

	revoked := "Bearer token-2"
	server.accept(func(token, _ string) bool { return token != revoked })
	server.breakWatches()
	server.add("after-revocation")
	eventually(t, "what came after the revocation", func() bool { return s.has("after-revocation") })
	if got := provider.Runs(); got != 4 {
		t.Errorf("%d runs for one revocation", got)
	}
}
