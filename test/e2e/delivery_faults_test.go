package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/relyingparty"
)

// A thousand tokens are renewed because their identity has changed, while agent, webhook and API server are killed in turn: every
// Secret gets its new token, and none is ever without one.
func TestPlaneAThousandRenewalsThroughCrashes(t *testing.T) {
	withPlane(t)
	const secrets = 1000
	p := newPlane(t)
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.awsIdentity(t, namespace, "banana", "dev")
	p.letAgent(t, namespace)
	tokens := followTokens(t, p, namespace)
	fill(t, p, namespace, secrets)
	tokens.await(t, secrets, 1)

	p.patchIdentity(t, namespace, "banana", `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`)
	for _, component := range []string{"agent", "webhook", "apiserver", "agent"} {
		before := tokens.of(2)
		eventually(t, func() error {
			if now := tokens.of(2); now < before+secrets/20 && now < secrets {
				return fmt.Errorf("%d of %d are renewed", now, secrets)
			}
			return nil
		})
		t.Logf("killing %s with %d of %d renewed", component, tokens.of(2), secrets)
		p.kill(t, component)
	}
	tokens.await(t, secrets, 2)
	if n := tokens.lost.Load(); n != 0 {
		t.Errorf("a Secret was seen %d times without the token that it had", n)
	}
}

// fill makes labelled Secrets, several at a time.
func fill(t *testing.T, p plane, namespace string, n int) {
	t.Helper()
	client := p.client(t).CoreV1().Secrets(namespace)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < n; i += 8 {
				if _, err := client.Create(t.Context(), tokenSecret(fmt.Sprintf("s%04d", i), namespace, "banana"), metav1.CreateOptions{}); err != nil {
					t.Errorf("create: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
}

// tokens are what an informer sees of the labelled Secrets of a namespace.
type tokens struct {
	mu        sync.Mutex
	audiences map[string]int // by the name of the Secret: how many its token has
	lost      atomic.Int64   // changes that left a Secret without the token that it had
}

func followTokens(t *testing.T, p plane, namespace string) *tokens {
	t.Helper()
	f := &tokens{audiences: map[string]int{}}
	factory := informers.NewSharedInformerFactoryWithOptions(p.client(t), 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}.String()
	}))
	if _, err := factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.see(o.(*corev1.Secret)) },
		UpdateFunc: func(_, o any) { f.see(o.(*corev1.Secret)) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.StartWithContext(ctx)
	return f
}

func (f *tokens) see(secret *corev1.Secret) {
	token, err := relyingparty.Inspect(string(secret.Data["token"]))
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, had := f.audiences[secret.Name]; had && err != nil {
		f.lost.Add(1)
	}
	if err == nil {
		f.audiences[secret.Name] = len(token.Audience)
	}
}

// of is how many tokens have so many audiences.
func (f *tokens) of(audiences int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, has := range f.audiences {
		if has == audiences {
			n++
		}
	}
	return n
}

// await waits until n Secrets have a token of so many audiences.
func (f *tokens) await(t *testing.T, n, audiences int) {
	t.Helper()
	eventually(t, func() error {
		if now := f.of(audiences); now != n {
			return fmt.Errorf("%d of %d Secrets have their token", now, n)
		}
		return nil
	})
}
