package contextdelivery_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/test/testkit"
)

// landscape is many objects, each with a Secret by a binding and one by an identity, on a few clusters.
func landscape(objects, clusters int) []contexts.Placed {
	all := make([]contexts.Placed, 0, objects)
	for i := range objects {
		all = append(all, placed(fmt.Sprintf("foo-%d", i), []string{fmt.Sprintf("cluster-%d", i%clusters)}, fmt.Sprintf("cloudprovider-%d=by:infra", i), fmt.Sprintf("dns-%d=kiwi", i)))
	}
	return all
}

// Ten thousand objects on fifty clusters: what their list costs one process, and how long it takes until it is known what is delivered.
func BenchmarkFill(b *testing.B) {
	all := landscape(10000, 50)
	b.ReportAllocs()
	for b.Loop() {
		w := newWorld(b)
		w.fill(b, all...)
	}
}

// A binding to which ten thousand objects refer is changed: until a watch of one cluster has its two hundred.
func BenchmarkBindingChanges(b *testing.B) {
	w := newWorld(b)
	w.fill(b, landscape(10000, 50)...)
	w.set(func() { w.clusters["agent"] = cluster("cluster-7") })
	seen := testkit.Need(w.Watch(as(b, "agent"), &internalversion.ListOptions{}))(b)
	defer seen.Stop()
	for range 400 {
		<-seen.ResultChan()
	}
	i := 0
	for b.Loop() {
		i++
		w.bindings.Modify(binding("infra", []string{"banana", "kiwi"}[i%2]))
		for range 200 {
			<-seen.ResultChan()
		}
	}
}

// The list of one cluster that has everything.
func BenchmarkList(b *testing.B) {
	w := newWorld(b)
	w.fill(b, landscape(10000, 1)...)
	w.set(func() { w.clusters["agent"] = cluster("cluster-0") })
	b.ReportAllocs()
	for b.Loop() {
		list, err := w.List(as(b, "agent"), &internalversion.ListOptions{})
		if err != nil || len(list.(*v1alpha1.ContextDeliveryList).Items) != 20000 {
			b.Fatal(err)
		}
	}
}
