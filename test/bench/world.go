package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	agentUser    = "system:serviceaccount:credence-system:credence-agent"
	identityPath = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/%s/workloadidentities"
	rbacPath     = "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/"
)

// world is what the parts that deal with Secrets and pods work with: the plane, a namespace of their own, and two clients of
// kube-apiserver, a bare one and the one that the agent uses.
type world struct {
	*client
	plane     plane
	namespace string
	// objects is a client of controller-runtime, without a limit on requests.
	objects ctrl.Client
	// metrics calls the health servers of components.
	metrics *http.Client
}

// newWorld makes a namespace with labels; the function removes it.
func newWorld(ctx context.Context, p plane, labels map[string]string) (*world, func(), error) {
	c, err := newClient(p)
	if err != nil {
		return nil, nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	objects, err := ctrl.New(config, ctrl.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, nil, err
	}
	metrics, err := relyingParty(p.CAFile)
	if err != nil {
		return nil, nil, err
	}
	namespace, err := c.create(ctx, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"generateName": "bench-", "labels": labels}})
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = c.remove(context.WithoutCancel(ctx), "/api/v1/namespaces/"+namespace) }
	w := &world{c, p, namespace, objects, metrics}
	if err := w.readMetrics(ctx); err != nil {
		remove()
		return nil, nil, err
	}
	return w, remove, nil
}

// readMetrics gives the client of metrics the token of a service account that may read them, for as long as the namespace exists.
func (w *world) readMetrics(ctx context.Context) error {
	var owner corev1.Namespace
	if err := w.get(ctx, "", w.namespace, &owner); err != nil {
		return err
	}
	account := corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "metrics"}}
	binding := rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID}}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "credence:metrics:reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: account.Name}},
	}
	token := authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(12 * 60 * 60))}}
	if err := errors.Join(w.objects.Create(ctx, &account), w.objects.Create(ctx, &binding), w.objects.SubResource("token").Create(ctx, &account, &token)); err != nil {
		return fmt.Errorf("get a token that reads metrics: %w", err)
	}
	w.metrics.Transport = transport.NewBearerAuthRoundTripper(token.Status.Token, w.metrics.Transport)
	return nil
}

// identity makes an identity for AWS, whose tokens are for a role.
func (w *world) identity(ctx context.Context, name string) error {
	spec := map[string]any{"audiences": []string{"sts.amazonaws.com"}, "targetSystem": map[string]any{"type": "aws", "providerConfig": map[string]any{
		"apiVersion": "aws.authentication.gardener.cloud/v1alpha1", "kind": "Config", "iamRoleARN": "arn:aws:iam::112233445566:role/bench",
	}}}
	_, err := w.create(ctx, fmt.Sprintf(identityPath, w.namespace), object("authentication.gardener.cloud/v1alpha1", "WorkloadIdentity", name, spec))
	return err
}

// bind gives a user of the cluster a ClusterRole, or a Role, in the namespace.
func (w *world) bind(ctx context.Context, name, kind, role string, subject map[string]any) error {
	binding := object("", "", name, nil)
	binding["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
	binding["subjects"] = []any{subject}
	_, err := w.create(ctx, fmt.Sprintf(rbacPath, w.namespace)+"rolebindings", binding)
	return err
}

func (w *world) agentMayMint(ctx context.Context) error {
	return w.bind(ctx, "agent-mints", "ClusterRole", "credence:agent:identities", map[string]any{"kind": "User", "name": agentUser})
}

func (w *world) get(ctx context.Context, namespace, name string, object ctrl.Object) error {
	return w.objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
}

// many does something count times, so many at once, and stops at the first error.
func many(ctx context.Context, count, workers int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// until calls so again and again until it returns true, for at most patience.
func until(ctx context.Context, what string, patience, every time.Duration, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		yes, err := so(ctx)
		if yes && err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, errors.Join(context.Cause(ctx), err))
		}
	}
}

// healthURL is where the health server of a component of the plane is, by its arguments.
func (p plane) healthURL(component string) (string, error) {
	pid, err := p.pid(component)
	if err != nil {
		return "", err
	}
	_, args, err := commandOf(pid)
	if err != nil {
		return "", err
	}
	i := slices.Index(args, "--health-port")
	if i < 0 || i+1 == len(args) {
		return "", fmt.Errorf("%s has no health server: %s", component, strings.Join(args, " "))
	}
	return "https://127.0.0.1:" + args[i+1], nil
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
