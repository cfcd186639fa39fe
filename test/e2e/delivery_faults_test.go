package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/relyingparty"
)

// A thousand tokens are renewed because their identity has changed, while agent, webhook and API server are killed in turn: every
// Secret gets its new token, and none is ever without one.
func TestAThousandRenewalsThroughCrashes(t *testing.T) {
	const secrets = 1000
	p := newPlane(t)
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.awsIdentity(t, namespace, "banana", "dev")
	p.letAgent(t, namespace)
	fill(t, p, namespace, secrets)
	awaitAll(t, p, namespace, secrets, func(i relyingparty.Inspection) bool { return len(i.Audience) == 1 })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var without atomic.Int64
	var watching sync.WaitGroup
	watching.Go(func() { watchForEmpty(ctx, p, t, namespace, &without) })
	p.patchIdentity(t, namespace, "banana", `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`)
	for _, component := range []string{"agent", "webhook", "apiserver", "agent"} {
		before := renewed(t, p, namespace)
		waitFor(t, 2*time.Minute, func() error {
			if now := renewed(t, p, namespace); now < before+secrets/20 && now < secrets {
				return fmt.Errorf("%d of %d are renewed", now, secrets)
			}
			return nil
		})
		t.Logf("killing %s with %d of %d renewed", component, renewed(t, p, namespace), secrets)
		p.kill(t, component)
	}
	awaitAll(t, p, namespace, secrets, func(i relyingparty.Inspection) bool { return len(i.Audience) == 2 })
	cancel()
	watching.Wait()
	if n := without.Load(); n != 0 {
		t.Errorf("a Secret was seen %d times without a token", n)
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

// tokens are what the tokens of a namespace say; nil for a Secret without one.
func tokensOf(t *testing.T, p plane, namespace string) []*relyingparty.Inspection {
	t.Helper()
	list, err := p.client(t).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}.String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []*relyingparty.Inspection
	for _, secret := range list.Items {
		if inspection, err := relyingparty.Inspect(string(secret.Data["token"])); err == nil {
			all = append(all, &inspection)
		} else {
			all = append(all, nil)
		}
	}
	return all
}

func renewed(t *testing.T, p plane, namespace string) int {
	t.Helper()
	n := 0
	for _, token := range tokensOf(t, p, namespace) {
		if token != nil && len(token.Audience) == 2 {
			n++
		}
	}
	return n
}

func awaitAll(t *testing.T, p plane, namespace string, n int, right func(relyingparty.Inspection) bool) {
	t.Helper()
	waitFor(t, 4*time.Minute, func() error {
		done := 0
		for _, token := range tokensOf(t, p, namespace) {
			if token != nil && right(*token) {
				done++
			}
		}
		if done != n {
			return fmt.Errorf("%d of %d Secrets have their token", done, n)
		}
		return nil
	})
}

// watchForEmpty counts every change that leaves a Secret without a token.
func watchForEmpty(ctx context.Context, p plane, t *testing.T, namespace string, without *atomic.Int64) {
	client := p.client(t).CoreV1().Secrets(namespace)
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Errorf("list: %v", err)
		return
	}
	changes, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Errorf("watch: %v", err)
		return
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if secret, ok := change.Object.(*corev1.Secret); ok && len(secret.Data["token"]) == 0 {
			without.Add(1)
		}
	}
}
