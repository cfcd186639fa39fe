package workloadidentity

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Names of other namespaces are not shown to those who see the identity.
func TestReferrers(t *testing.T) {
	for want, bindings := range map[string][]string{
		"shop/a":                            {"shop/a"},
		"shop/a, shop/b":                    {"shop/a", "shop/b"},
		"1 of other namespaces":             {"elsewhere/a"},
		"shop/z, and 2 of other namespaces": {"elsewhere/a", "shop-two/b", "shop/z"},
	} {
		if got := referrers("shop", bindings); got != want {
			t.Errorf("%q: %q, want %q", bindings, got, want)
		}
	}
}

// The user who deletes an identity learns that it stays, and how that ends.
func TestDeletionWarnsOfTheHold(t *testing.T) {
	wi := &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	if got := stays(wi); got != "" {
		t.Errorf("without a hold: %q", got)
	}
	wi.Finalizers = []string{v1alpha1.FinalizerBindings}
	if got, want := stays(wi), "credence identity release cart -n shop --force"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
}

// A manifest without finalizers does not take the hold off; a user does who updates an identity that is being deleted.
func TestUpdatesKeepTheHold(t *testing.T) {
	for name, test := range map[string]struct {
		deleted *metav1.Time
		old     []string
		update  []string
		want    []string
	}{
		"left out":                {old: []string{v1alpha1.FinalizerBindings}, want: []string{v1alpha1.FinalizerBindings}},
		"beside another":          {old: []string{"a/b", v1alpha1.FinalizerBindings}, update: []string{"a/b"}, want: []string{"a/b", v1alpha1.FinalizerBindings}},
		"kept":                    {old: []string{v1alpha1.FinalizerBindings}, update: []string{v1alpha1.FinalizerBindings}, want: []string{v1alpha1.FinalizerBindings}},
		"never there":             {old: []string{"a/b"}},
		"taken off once deleted":  {deleted: &metav1.Time{Time: time.Unix(1, 0)}, old: []string{v1alpha1.FinalizerBindings}},
		"left out, others remain": {old: []string{"a/b"}, update: []string{"c/d"}, want: []string{"c/d"}},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: test.deleted, Finalizers: test.old}}
			update := old.DeepCopy()
			update.Finalizers = test.update
			strategy{}.PrepareForUpdate(t.Context(), update, old)
			if !slices.Equal(update.Finalizers, test.want) {
				t.Errorf("finalizers %q, want %q", update.Finalizers, test.want)
			}
		})
	}
}
