package contexts_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/test/testkit"
)

// deliveries keeps what it is given, in words.
type deliveries struct {
	mu       sync.Mutex
	calls    []string
	objects  []contexts.Placed
	followed map[contexts.Source]string
}

func (d *deliveries) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *deliveries) Follow(source contexts.Source, fault string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, ok := d.followed[source]; ok && before == fault {
		return
	}
	if d.followed == nil {
		d.followed = map[contexts.Source]string{}
	}
	d.followed[source] = fault
	d.calls = append(d.calls, fmt.Sprintf("follow %s %s", source.Resource.Resource, fault))
}

func (d *deliveries) Set(_ contexts.Source, object contexts.Placed) {
	d.note("set %s", object.Object.Name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects = append(d.objects, object)
}

func (d *deliveries) Delete(_ contexts.Source, namespace, name string) {
	d.note("delete %s/%s", namespace, name)
}

func (d *deliveries) Filled(source contexts.Source)        { d.note("filled %s", source.Resource.Resource) }
func (d *deliveries) Forget(resource schema.GroupResource) { d.note("forget %s", resource.Resource) }

// want is an error unless the last calls are these.
func (d *deliveries) want(last ...string) func() error {
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := len(d.calls); n < len(last) || !slices.Equal(d.calls[n-len(last):], last) {
			return fmt.Errorf("calls are %q, want %q at the end", d.calls, last)
		}
		return nil
	}
}

func (d *deliveries) last() contexts.Placed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects[len(d.objects)-1]
}

// delivering is a kind of Shoots whose identities are delivered.
func delivering() *v1alpha1.ContextKind {
	kind := shoots("shoot")
	kind.Spec.References[0].Deliver = &v1alpha1.ContextDeliver{Namespace: "'shoot--' + object.metadata.name", SecretName: "'dns-' + reference"}
	return kind
}

func TestDeliveries(t *testing.T) {
	client, given := cluster(shoot("fruit", "banana", "dns"), project("orchard", "fruit")), &deliveries{}
	s := &storage{events: watch.NewFake(), list: v1alpha1.ContextKindList{Items: []v1alpha1.ContextKind{*delivering()}}}
	f := contexts.New(s, client, given, clock.RealClock{})
	if err := f.Delivering(); code(err) != http.StatusServiceUnavailable {
		t.Errorf("before anything was read: %v", err)
	}
	go f.Run(t.Context())
	eventually(t, given.want("follow shoots ", "set banana", "filled shoots"))
	eventually(t, f.Delivering)
	got := given.last()
	if got.Object.UID != "uid-of-banana" || got.Object.Kind != "Shoot" || got.Object.APIVersion != group+"/"+version || !slices.Equal(got.Clusters, []string{"east"}) ||
		len(got.Deliveries) != 1 || got.Deliveries[0].Secret.String() != "shoot--banana/dns-dns" || got.Renewal != "" {
		t.Errorf("placed %+v", got)
	}

	// Changes are given, with the time of the request for a renewal.
	asked := shoot("fruit", "banana", "dns")
	asked.SetAnnotations(map[string]string{"gardener.cloud/operation": "renew-workload-identity-token"})
	at := func(seconds int64, fields string) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(time.Unix(seconds, 0))
		return metav1.ManagedFieldsEntry{Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	annotation := `{"f:metadata":{"f:annotations":{".":{},"f:gardener.cloud/operation":{}}}}`
	for _, c := range []struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		{nil, "requested"},
		{[]metav1.ManagedFieldsEntry{{}, at(5, `[]`), at(1000, annotation), at(2000, `{"f:spec":{}}`), at(500, annotation)}, "1970-01-01T00:16:40Z"},
	} {
		asked.SetManagedFields(c.fields)
		update(t, client, asked)
		eventually(t, func() error {
			if got := given.last().Renewal; got != c.want {
				return fmt.Errorf("renewal %q, want %q", got, c.want)
			}
			return nil
		})
	}
	asked.SetAnnotations(map[string]string{"gardener.cloud/operation": "reconcile"})
	update(t, client, asked)
	eventually(t, func() error {
		if got := given.last().Renewal; got != "" {
			return errors.New(got)
		}
		return nil
	})

	// Another spec is another source, which is filled before the former is gone; a kind that delivers nothing any more is forgotten.
	changed := delivering()
	changed.Spec.References[0].Deliver.SecretName = "'other'"
	s.events.Modify(changed)
	eventually(t, given.want("follow shoots ", "set banana", "filled shoots"))
	seeds := shoots("shoot")
	seeds.Name, seeds.Spec.Object.Resource, seeds.Spec.Object.Kind = "seeds."+group, "seeds", "Seed"
	s.events.Add(seeds)
	eventually(t, given.want("follow shoots ContextKind shoots."+group+" conflicts with ContextKind seeds."+group+": the claim shoot, so neither is used: delete one of them"))
	s.events.Delete(seeds)
	eventually(t, given.want("follow shoots "))
	eventually(t, func() error {
		if n := count(client, "watch", "shoots"); n < 2 {
			return fmt.Errorf("%d watches", n)
		}
		return nil
	})
	testkit.Must(t, client.Resource(resource("shoots")).Namespace("fruit").Delete(t.Context(), "banana", metav1.DeleteOptions{}))
	eventually(t, given.want("delete fruit/banana"))
	s.events.Modify(shoots("shoot"))
	eventually(t, given.want("forget shoots"))
	eventually(t, func() error {
		if n := lists(client, "shoots"); n != 3 {
			return fmt.Errorf("shoots were listed %d times, want one for each spec", n)
		}
		return nil
	})
}

func update(t *testing.T, client dynamic.Interface, object *unstructured.Unstructured) {
	t.Helper()
	testkit.Must(t, testkit.Err(client.Resource(resource("shoots")).Namespace(object.GetNamespace()).Update(t.Context(), object, metav1.UpdateOptions{})))
}

// A stored ContextKind that this version cannot use may be one of deliveries: nothing is known, and nothing is forgotten.
func TestInvalidKindDelivers(t *testing.T) {
	given := &deliveries{}
	s := &storage{events: watch.NewFake(), list: v1alpha1.ContextKindList{Items: []v1alpha1.ContextKind{*delivering()}}}
	f := contexts.New(s, cluster(shoot("fruit", "banana", "dns")), given, clock.RealClock{})
	go f.Run(t.Context())
	eventually(t, given.want("filled shoots"))
	invalid := delivering()
	invalid.Spec.Clusters = "nothing("
	s.events.Modify(invalid)
	eventually(t, func() error {
		if err := f.Delivering(); code(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "ContextKind shoots.core.gardener.cloud is invalid") {
			return fmt.Errorf("%w, want 503", err)
		}
		return nil
	})
	testkit.Expect(t, given.want("filled shoots")())
	s.events.Modify(delivering())
	eventually(t, f.Delivering)

	// One that is deleted while another is invalid is forgotten when that is gone.
	other := delivering()
	other.Name, other.Spec.Object.Resource, other.Spec.Clusters = "seeds."+group, "seeds", "nothing("
	s.events.Add(other)
	eventually(t, func() error {
		if f.Delivering() == nil {
			return errors.New("what is delivered is known")
		}
		return nil
	})
	s.events.Delete(delivering())
	s.events.Delete(other)
	eventually(t, given.want("forget shoots"))
	eventually(t, f.Delivering)
}

// While the API does not serve the objects of a kind, what is delivered is not known; a kind without deliveries does not count.
func TestDeliveringInAnOutage(t *testing.T) {
	seeds := shoots("other")
	seeds.Name, seeds.Spec.Object.Resource, seeds.Spec.Object.Kind = "seeds."+group, "seeds", "Seed"
	client := cluster(shoot("fruit", "banana", "dns"))
	var away atomic.Value
	away.Store("seeds")
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetResource().Resource == away.Load(), nil, errors.New("connection refused")
	})
	s := &storage{events: watch.NewFake(), list: v1alpha1.ContextKindList{Items: []v1alpha1.ContextKind{*delivering(), *seeds}}}
	f := contexts.New(s, client, &deliveries{}, clock.RealClock{})
	go f.Run(t.Context())
	eventually(t, f.Delivering)
	away.Store("shoots")
	changed := delivering()
	changed.Spec.References[0].Deliver.SecretName = "'other'"
	s.events.Modify(changed)
	eventually(t, func() error {
		if err := f.Delivering(); code(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "connection refused") {
			return fmt.Errorf("%w, want 503", err)
		}
		return nil
	})
}
