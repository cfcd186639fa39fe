package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
)

// A thousand tokens are renewed because their identity has changed, while agent, webhook and API server are killed in turn: every
// Secret gets its new token, and none is ever without one.
func TestPlaneAThousandRenewalsThroughCrashes(t *testing.T) {
	p := alone(t)
	const secrets = 1000
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
	must(t, errOf(factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.see(o.(*corev1.Secret)) },
		UpdateFunc: func(_, o any) { f.see(o.(*corev1.Secret)) },
	})))
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

// An agent that is kept to namespaces delivers there, to Secrets and service accounts, and can read Secrets nowhere else: the signing keys of its cluster are safe
// from it. And while the webhook does not answer, pods and Secrets that need it are refused, and no others; tokens are renewed.
func TestPlaneBoundsOfDelivery(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	root := p.client(t)
	for _, name := range []string{"inside", "outside"} {
		p.must(t, "", "kubectl", "create", "namespace", name)
		p.awsIdentity(t, name, "banana", "dev")
		p.letAgent(t, name)
	}
	must(t, root.RbacV1().ClusterRoleBindings().Delete(t.Context(), "credence:agent", metav1.DeleteOptions{}))
	for _, role := range []string{"credence:agent", "credence:agent:secrets"} {
		p.bind(t, "inside", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "credence-agent", Namespace: "credence-system"})
	}
	// An agent that is kept to namespaces begins its watches with the rights that it has there.
	p.again(t, "--arg", "agent=--namespaces=inside")
	for _, name := range []string{"outside", "inside"} {
		must(t, errOf(root.CoreV1().Secrets(name).Create(t.Context(), tokenSecret("s", name, "banana"), metav1.CreateOptions{})))
	}
	p.awaitToken(t, "inside", "s", nil)
	if secret, err := root.CoreV1().Secrets("outside").Get(t.Context(), "s", metav1.GetOptions{}); err != nil || len(secret.Data["token"]) != 0 {
		t.Errorf("the Secret outside has %d bytes of token, %v", len(secret.Data["token"]), err)
	}
	agent := p.clientAs(t, agentUser, agentGroup)
	for _, namespace := range []string{"outside", "credence-system", ""} {
		if _, err := agent.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets of %q gives %v", namespace, err)
		}
	}

	p.enable(t, "inside")
	p.accountOf(t, "inside", "web", "banana")
	p.awaitToken(t, "inside", tokensecret.NameFor("web", "banana"), nil)

	t.Run("webhook that does not answer", func(t *testing.T) { webhookThatDoesNotAnswer(t, p) })
}

func webhookThatDoesNotAnswer(t *testing.T, p plane) {
	root := p.client(t).CoreV1()
	create := func(namespace string) error {
		_, err := root.Pods(namespace).Create(t.Context(), podOf("default"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func() error { return create("inside") })
	signalWebhook(t, p, syscall.SIGSTOP)
	t.Cleanup(func() { signalWebhook(t, p, syscall.SIGCONT) })
	eventually(t, func() error { // once the API server knows the label of the namespace
		err := create("inside")
		if err == nil {
			return errors.New("a pod that the webhook has not seen was let through")
		}
		refused(t, "a pod that the webhook has not seen", err, "pods.identity.credence.dev")
		return nil
	})
	expect(t, create("outside"), "a pod of another namespace")
	if _, err := root.Secrets("inside").Create(t.Context(), tokenSecret("s2", "inside", "banana"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "secrets.identity.credence.dev") {
		t.Errorf("a labelled Secret that the webhook has not seen: %v", err)
	}
	p.patchIdentity(t, "inside", "banana", `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`)
	p.awaitToken(t, "inside", "s", func(c carried) bool { return slices.Contains(c.Audience, "second") })
	plain := tokenSecret("plain", "inside", "banana")
	plain.Labels = nil
	expect(t, errOf(root.Secrets("inside").Create(t.Context(), plain, metav1.CreateOptions{})), "a Secret without the label")
	signalWebhook(t, p, syscall.SIGCONT)
	eventually(t, func() error { return create("inside") })
}
