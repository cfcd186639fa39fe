package credentialsbinding

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

// holding is a world that remembers what is held.
type holding struct {
	world
	held *[]string
}

func (h holding) Hold(ctx context.Context, name string, dryRun bool) error {
	*h.held = append(*h.held, request.NamespaceValue(ctx)+"/"+name)
	return h.world.Hold(ctx, name, dryRun)
}

// referred are the bindings that identities are to name.
type referred map[string][]string

func (referred) Held(context.Context) ([]v1alpha1.WorkloadIdentity, error) { return nil, nil }

func (r referred) Refer(_ context.Context, held *v1alpha1.WorkloadIdentity, bindings []string) error {
	r[held.Name] = bindings
	return nil
}

// An identity is not released before the longest request is over that may have checked a binding before the deletion.
func TestRelease(t *testing.T) {
	deletion := time.Unix(1000, 0)
	var held []v1alpha1.WorkloadIdentity
	for _, name := range []string{"free", "bound"} {
		held = append(held, v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, DeletionTimestamp: &metav1.Time{Time: deletion}}})
	}
	bound := *binding(nil, ref("bound"))
	bound.Namespace, bound.Name = "elsewhere", "b"
	for after, want := range map[time.Duration]referred{
		0:                {"bound": {"elsewhere/b"}},
		60 * time.Second: {"bound": {"elsewhere/b"}},
		90 * time.Second: {"bound": {"elsewhere/b"}, "free": nil},
	} {
		got := referred{}
		testkit.Expect(t, release(t.Context(), got, held, []v1alpha1.CredentialsBinding{bound}, deletion.Add(after)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s after the deletion (-want +got):\n%s", after, diff)
		}
	}
}

// Identities that have lost the hold get it back, each once; others are left alone.
func TestRehold(t *testing.T) {
	kept, deleted := identity("aws", ""), identity("aws", "")
	kept.Finalizers = []string{v1alpha1.FinalizerBindings}
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	var held []string
	w := holding{world{identities: map[string]*v1alpha1.WorkloadIdentity{
		"shop/lost": identity("aws", ""), "shop/kept": kept, "shop/deleted": deleted, "shop/just-deleted": identity("aws", ""), "shop/unbound": identity("aws", ""),
	}, deleted: map[string]bool{"shop/just-deleted": true}}, &held}
	var bindings []v1alpha1.CredentialsBinding
	for _, name := range []string{"lost", "lost", "kept", "deleted", "gone", "just-deleted"} {
		bindings = append(bindings, *binding(nil, ref(name)))
	}
	bindings = append(bindings, *binding(ref("static"), nil))
	testkit.Expect(t, (references{w, w}).rehold(t.Context(), bindings))
	if want := []string{"shop/lost", "shop/just-deleted"}; !slices.Equal(held, want) {
		t.Errorf("held %q, want %q", held, want)
	}
}
