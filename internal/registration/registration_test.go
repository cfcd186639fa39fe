package registration

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/credence-id/credence/test/testkit"
)

func TestRegistersOnceItAnswers(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": owner, "uid": "1-2-3"},
	}}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "credence-system"}}}
	objects := fake.NewSimpleDynamicClient(runtime.NewScheme(), role, namespace)
	answer := errors.New("it does not answer")
	r := &Registrar{
		Objects: objects, Namespace: "credence-system", Log: slog.New(slog.DiscardHandler),
		Bundle: func(context.Context) ([]byte, error) { return []byte("authorities"), nil },
		Ready: func(_ context.Context, bundle []byte) error {
			if string(bundle) != "authorities" {
				t.Errorf("verified by %q", bundle)
			}
			return answer
		},
	}
	names := []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"}
	if err := r.pass(t.Context()); !errors.Is(err, answer) {
		t.Fatalf("without an answer: %v", err)
	}
	for _, name := range names {
		if _, err := objects.Resource(apiServices).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			t.Errorf("%s is registered before the server answers", name)
		}
	}
	answer = nil
	testkit.Must(t, r.pass(t.Context()))
	for _, name := range names {
		made := testkit.Need(objects.Resource(apiServices).Get(t.Context(), name, metav1.GetOptions{}))(t)
		if owners := made.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "1-2-3" || owners[0].Kind != "ClusterRole" {
			t.Errorf("%s is owned by %v", name, owners)
		}
	}
	// An APIService that is there is left alone, also while the server is away.
	answer = errors.New("it does not answer")
	testkit.Expect(t, r.pass(t.Context()), "with all registered")
	stay := func(want bool) {
		t.Helper()
		for _, name := range names {
			if _, err := objects.Resource(apiServices).Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != want {
				t.Errorf("%s: %v, want that it is there: %t", name, err, want)
			}
		}
	}
	// A process that ends leaves it alone, too, unless it ends with its namespace. Nothing is made there from then on.
	testkit.Expect(t, r.Withdraw(t.Context()))
	stay(true)
	now := metav1.Now()
	namespace.SetDeletionTimestamp(&now)
	testkit.Must(t, testkit.Err(objects.Resource(namespaces).Update(t.Context(), namespace, metav1.UpdateOptions{})))
	answer = nil
	testkit.Expect(t, r.Withdraw(t.Context()))
	stay(false)
	testkit.Expect(t, r.pass(t.Context()))
	stay(false)
}

// The authorities of another source are followed, once the server shows a certificate of theirs.
func TestFollowsAuthorities(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": owner, "uid": "1-2-3"},
	}}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "credence-system"}}}
	objects := fake.NewSimpleDynamicClient(runtime.NewScheme(), role, namespace)
	given, shown := "first", "first"
	r := &Registrar{
		Objects: objects, Namespace: "credence-system", Log: slog.New(slog.DiscardHandler), Follow: true,
		Bundle: func(context.Context) ([]byte, error) { return []byte(given), nil },
		Ready: func(_ context.Context, bundle []byte) error {
			if string(bundle) != shown {
				return errors.New("another certificate")
			}
			return nil
		},
	}
	want := func(bundle string) {
		t.Helper()
		for _, version := range groupVersions() {
			found := testkit.Need(objects.Resource(apiServices).Get(t.Context(), apiServiceName(version), metav1.GetOptions{}))(t)
			if !trusts(found, []byte(bundle)) || len(found.GetOwnerReferences()) != 1 {
				t.Errorf("%s is %v, want the bundle %q", found.GetName(), found.Object, bundle)
			}
		}
	}
	testkit.Must(t, r.pass(t.Context()))
	want("first")
	given = "second"
	if err := r.pass(t.Context()); err == nil {
		t.Error("no error while the server shows a certificate of the authorities before")
	}
	want("first")
	shown = "second"
	testkit.Must(t, r.pass(t.Context()))
	want("second")
	// Where another program writes caBundle, it is left alone.
	r.Follow, given = false, "third"
	testkit.Expect(t, r.pass(t.Context()))
	want("second")
}
