package secretwatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/test/testkit"
)

// patience is for a machine that hangs.
const patience = 5 * time.Minute

// others stands for the cache of everything but Secrets.
type others struct{ cache.Cache }

func (others) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
func (others) WaitForCacheSync(context.Context) bool { return true }

func binding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}}
}

func secret(namespace, name, owner string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"owner": owner}}}
}

// events are the calls of a handler, in order.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) add(what string, object any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, what+" "+object.(*corev1.Secret).Namespace+"/"+object.(*corev1.Secret).Name)
}

func (e *events) has(event string) bool { return e.count(event) > 0 }

func (e *events) count(event string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, one := range e.all {
		if one == event {
			n++
		}
	}
	return n
}

func (e *events) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.add("add", object) },
		UpdateFunc: func(_, object any) { e.add("update", object) },
		DeleteFunc: func(object any) { e.add("delete", object) },
	}
}

// start runs a cache over a fake of the API. Each watch, as resource/namespace, is sent to watches, if not nil: the fake has
// no events between a list and a watch.
func start(t *testing.T, watches chan string, served func(string), objects ...runtime.Object) (*Cache, *fake.Clientset) {
	t.Helper()
	kube := fake.NewClientset(objects...)
	if watches != nil {
		kube.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			w, err := kube.Tracker().Watch(action.GetResource(), action.GetNamespace())
			watches <- action.GetResource().Resource + "/" + action.GetNamespace()
			return true, w, err
		})
	}
	return run(t, kube, served), kube
}

func await(t *testing.T, watches chan string, want string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case got := <-watches:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("%s is not watched", want)
		}
	}
}

func run(t *testing.T, kube *fake.Clientset, served func(string)) *Cache {
	t.Helper()
	c := newCache(Config{Binding: "b", Selector: "l=v", Served: served}, others{}, kube)
	testkit.Must(t, c.IndexField(t.Context(), &corev1.Secret{}, "owner", func(o client.Object) []string { return []string{o.GetAnnotations()["owner"]} }))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended // so all that it has started has ended
	})
	limited, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if !c.WaitForCacheSync(limited) {
		t.Fatal("the cache was not filled")
	}
	return c
}

func names(t *testing.T, c *Cache, options ...client.ListOption) []string {
	t.Helper()
	var list corev1.SecretList
	testkit.Must(t, c.List(t.Context(), &list, options...))
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Namespace+"/"+item.Name)
	}
	slices.Sort(all)
	return all
}

func TestOnlyBoundNamespacesAreRead(t *testing.T) {
	c, kube := start(t, nil, nil, binding("a"), binding("b"), secret("a", "1", "x"), secret("a", "2", "y"), secret("b", "1", "x"), secret("c", "1", "x"))
	for what, test := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"all":                      {nil, []string{"a/1", "a/2", "b/1"}},
		"a namespace":              {[]client.ListOption{client.InNamespace("a")}, []string{"a/1", "a/2"}},
		"one that is not bound":    {[]client.ListOption{client.InNamespace("c")}, nil},
		"an owner":                 {[]client.ListOption{client.MatchingFields{"owner": "x"}}, []string{"a/1", "b/1"}},
		"an owner of a namespace":  {[]client.ListOption{client.InNamespace("b"), client.MatchingFields{"owner": "x"}}, []string{"b/1"}},
		"labels":                   {[]client.ListOption{client.MatchingLabels{"l": "other"}}, nil},
		"as they are in the cache": {[]client.ListOption{client.UnsafeDisableDeepCopy, client.InNamespace("b")}, []string{"b/1"}},
	} {
		if got := names(t, c, test.options...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
	var found corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "2"}, &found); err != nil || found.Annotations["owner"] != "y" {
		t.Errorf("get: %v, %v", found.Annotations, err)
	}
	for _, key := range []client.ObjectKey{{Namespace: "a", Name: "3"}, {Namespace: "c", Name: "1"}} {
		if err := c.Get(t.Context(), key, &found); !apierrors.IsNotFound(err) {
			t.Errorf("get %s: %v", key, err)
		}
	}
	for _, action := range kube.Actions() {
		if resource := action.GetResource().Resource; resource == "secrets" && action.GetNamespace() != "a" && action.GetNamespace() != "b" {
			t.Errorf("Secrets of %q were requested", action.GetNamespace())
		}
	}
}

func TestNamespacesComeAndGo(t *testing.T) {
	served, watches := make(chan string, 10), make(chan string, 100)
	c, kube := start(t, watches, func(namespace string) { served <- namespace }, secret("a", "1", "x"))
	await(t, watches, "rolebindings/")
	received := &events{}
	i := testkit.Need(c.GetInformer(t.Context(), &corev1.Secret{}))(t)
	testkit.Must(t, testkit.Err(i.AddEventHandler(received.handler())))
	if c.Serves("a") {
		t.Error("a namespace without a binding is served")
	}
	for round := range 3 {
		testkit.Must(t, testkit.Err(kube.RbacV1().RoleBindings("a").Create(t.Context(), binding("a"), metav1.CreateOptions{})))
		if got := <-served; got != "a" || !c.Serves("a") {
			t.Fatalf("served: %s, %v", got, c.Serves("a"))
		}
		if got := names(t, c); !slices.Equal(got, []string{"a/1"}) {
			t.Errorf("bound: %v", got)
		}
		testkit.Must(t, kube.RbacV1().RoleBindings("a").Delete(t.Context(), "b", metav1.DeleteOptions{}))
		testkit.Eventually(t, "the namespace goes", func() bool { return !c.Serves("a") && received.count("delete a/1") == round+1 })
		if got := names(t, c); got != nil {
			t.Errorf("not bound any more: %v", got)
		}
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	want := []string{"add a/1", "delete a/1", "add a/1", "delete a/1", "add a/1", "delete a/1"}
	if !slices.Equal(received.all, want) {
		t.Errorf("received %v, want %v", received.all, want)
	}
}

func TestHandlersSeeWhatIsThereAndWhatChanges(t *testing.T) {
	watches := make(chan string, 100)
	c, kube := start(t, watches, nil, binding("a"), secret("a", "1", "x"))
	await(t, watches, "secrets/a")
	received := &events{}
	i, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("Secret"))
	testkit.Must(t, err)
	registered, err := i.AddEventHandler(received.handler())
	if err != nil || !received.has("add a/1") || !registered.HasSynced() {
		t.Fatalf("%v %v %v", received.all, registered.HasSynced(), err)
	}
	secrets := kube.CoreV1().Secrets("a")
	testkit.Must(t, testkit.Err(secrets.Update(t.Context(), secret("a", "1", "z"), metav1.UpdateOptions{})))
	testkit.Eventually(t, "the change is delivered", func() bool { return received.has("update a/1") })
	if got := names(t, c, client.MatchingFields{"owner": "z"}); !slices.Equal(got, []string{"a/1"}) {
		t.Errorf("by the new value: %v", got)
	}
	testkit.Must(t, secrets.Delete(t.Context(), "1", metav1.DeleteOptions{}))
	testkit.Eventually(t, "the deletion is delivered", func() bool { return received.has("delete a/1") })
	testkit.Must(t, i.RemoveEventHandler(registered))
	before := len(received.all)
	seen := &events{}
	testkit.Must(t, testkit.Err(i.AddEventHandler(seen.handler())))
	testkit.Must(t, testkit.Err(secrets.Create(t.Context(), secret("a", "3", "x"), metav1.CreateOptions{})))
	testkit.Eventually(t, "another handler is called", func() bool { return seen.has("add a/3") })
	if received.mu.Lock(); len(received.all) != before {
		t.Errorf("a removed handler receives %v", received.all[before:])
	}
	received.mu.Unlock()
}

// A namespace whose binding grants no right does not block the others.
func TestRefusalOfOneNamespace(t *testing.T) {
	kube := fake.NewClientset(binding("a"), binding("b"), secret("a", "1", "x"), secret("b", "1", "x"))
	refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "a", nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", nil)
	}
	kube.PrependReactor("list", "secrets", refuse)
	c := run(t, kube, nil)
	if got := names(t, c); !slices.Equal(got, []string{"b/1"}) || c.Serves("a") || !c.Serves("b") {
		t.Errorf("%v, a served: %v, b served: %v", got, c.Serves("a"), c.Serves("b"))
	}
}
