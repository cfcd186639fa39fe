package contextkind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

func TestDeliveries(t *testing.T) {
	const placed = `"metadata":{"namespace":"fruit"},"status":{"technicalID":"shoot--fruit--foo"}`
	provider := func(kind, identity string) string {
		return `{"type":"` + kind + `","workloadIdentity":{"name":"` + identity + `"}}`
	}
	dns := func(providers ...string) string {
		return `{` + placed + `,"spec":{"dns":{"providers":[` + strings.Join(providers, ",") + `]}}}`
	}
	type deliveries = []contextkind.Delivery
	secret := func(name, identity, fault string) contextkind.Delivery {
		return contextkind.Delivery{Secret: types.NamespacedName{Namespace: "shoot--fruit--foo", Name: name}, Reference: "dns", To: types.NamespacedName{Namespace: "fruit", Name: identity}, Fault: fault}
	}
	unknown := func(cause string) contextkind.Delivery {
		return contextkind.Delivery{Reference: "dns", Fault: "the Secret of reference dns is not known: " + cause}
	}
	for name, c := range map[string]struct {
		object string
		change func(*v1alpha1.ContextDeliver)
		want   deliveries
	}{
		"nothing":                 {dns(), nil, nil},
		"nothing, placed nowhere": {`{"spec":{}}`, nil, nil},
		"two":                     {dns(provider("aws", "banana"), provider("google", "banana")), nil, deliveries{secret("workloadidentity-dns-aws", "banana", ""), secret("workloadidentity-dns-google", "banana", "")}},
		"one type twice":          {dns(provider("aws", "banana"), provider("aws", "banana")), nil, deliveries{secret("workloadidentity-dns-aws", "banana", "")}},
		"one type of two": {dns(provider("aws", "banana"), provider("aws", "kiwi"), provider("google", "kiwi")), nil, deliveries{
			secret("workloadidentity-dns-aws", "banana", "the object names the Secret shoot--fruit--foo/workloadidentity-dns-aws twice: for fruit/banana by reference dns, and for fruit/kiwi by reference dns"),
			secret("workloadidentity-dns-google", "kiwi", ""),
		}},
		"by the name":          {dns(provider("aws", "banana")), func(d *v1alpha1.ContextDeliver) { d.References = "" }, deliveries{secret("workloadidentity-dns-banana", "banana", "")}},
		"placed nowhere":       {`{"metadata":{"namespace":"fruit"},"spec":{"dns":{"providers":[` + provider("aws", "banana") + `]}}}`, nil, deliveries{unknown("deliver.namespace: no such key: status")}},
		"no namespace":         {dns(provider("aws", "banana")), func(d *v1alpha1.ContextDeliver) { d.Namespace = "'../x'" }, deliveries{unknown(`deliver.namespace: "../x" is not the name of a namespace`)}},
		"an empty namespace":   {dns(provider("aws", "banana")), func(d *v1alpha1.ContextDeliver) { d.Namespace = "''" }, deliveries{unknown(`deliver.namespace: "" is not the name of a namespace`)}},
		"a bad second":         {dns(provider("aws", "banana"), provider("A/B", "kiwi")), nil, deliveries{secret("workloadidentity-dns-aws", "banana", ""), unknown(`deliver.secretName: "workloadidentity-dns-A/B" is not the name of a Secret`)}},
		"a long name":          {dns(provider(strings.Repeat("a", 250), "banana")), nil, deliveries{unknown(`deliver.secretName: "workloadidentity-dns-` + strings.Repeat("a", 43) + `…" is not the name of a Secret: it has 271 characters, and may have 253`)}},
		"the longest name":     {dns(provider(strings.Repeat("a", 253-len("workloadidentity-dns-")), "banana")), nil, deliveries{secret("workloadidentity-dns-"+strings.Repeat("a", 232), "banana", "")}},
		"a list too short":     {dns(provider("aws", "banana")), func(d *v1alpha1.ContextDeliver) { d.References = "[]" }, deliveries{unknown("deliver.references: the list has 0 entries, and the reference has 1")}},
		"no type":              {dns(`{"workloadIdentity":{"name":"banana"}}`), nil, deliveries{unknown("deliver.references: no such key: type")}},
		"a reference at fault": {dns(`{"type":"aws","workloadIdentity":{"name":1}}`), nil, deliveries{unknown("entry 0 of the list is of type double, and not a string")}},
		"a long namespace": {dns(provider("aws", "banana")), func(d *v1alpha1.ContextDeliver) { d.Namespace = "'shoot--" + strings.Repeat("a", 253) + "'" }, deliveries{unknown(
			`deliver.namespace: "shoot--` + strings.Repeat("a", 57) + `…" is not the name of a namespace: it has 260 characters, and may have 63`)}},
		"too dear": {dns(append(slices.Repeat([]string{"{}"}, 2000), provider("aws", "banana"))...), func(d *v1alpha1.ContextDeliver) {
			d.SecretName = "object.spec.dns.providers.filter(p, has(p.type))[0].type"
		}, deliveries{unknown("deliver.secretName: operation cancelled: actual cost limit exceeded")}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shoots()
			spec.References = spec.References[:1]
			spec.References[0].Deliver = delivered()
			if c.change != nil {
				c.change(spec.References[0].Deliver)
			}
			kind, errs := contextkind.Compile(spec)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if !kind.Delivers {
				t.Error("the kind does not deliver")
			}
			if diff := cmp.Diff(c.want, kind.Uses(t.Context(), decode(t, c.object), "fruit").Deliveries); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A binding and an identity with one Secret are two, whatever the binding refers to.
func TestDeliveriesOfTwoReferences(t *testing.T) {
	spec := shoots()
	deliver := &v1alpha1.ContextDeliver{Namespace: "'garden'", SecretName: "'cloudprovider'"}
	spec.References = []v1alpha1.ContextReference{
		{Name: "bound", CredentialsBindings: "['a']", Deliver: deliver},
		{Name: "direct", WorkloadIdentities: "['a']", Deliver: deliver},
	}
	kind, errs := contextkind.Compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := kind.Uses(t.Context(), decode(t, `{"spec":{}}`), "fruit").Deliveries
	if len(got) != 1 || !got[0].Bound || !strings.Contains(got[0].Fault, "names the Secret garden/cloudprovider twice") {
		t.Errorf("%+v", got)
	}
}

// The deliveries of one object are bounded, and an object with more keeps its Secrets.
func TestDeliveriesAreBounded(t *testing.T) {
	spec := shoots()
	spec.References = []v1alpha1.ContextReference{{Name: "dns", WorkloadIdentities: "object.spec.identities", Deliver: &v1alpha1.ContextDeliver{Namespace: "'n'", SecretName: "'s-' + reference"}}}
	kind, errs := contextkind.Compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for n, want := range map[int]string{32: "", 33: "the object needs 33 Secrets, and at most 32 are delivered of one object: make it refer to fewer identities and bindings"} {
		var names []any
		for i := range n {
			names = append(names, fmt.Sprintf("i%d", i))
		}
		got := kind.Uses(t.Context(), map[string]any{"spec": map[string]any{"identities": names}}, "fruit").Deliveries
		if want == "" && len(got) == n && got[n-1].Fault == "" {
			continue
		}
		if len(got) != 33 || got[31].Fault != "" || got[32].Secret.Name != "" || got[32].Fault != want {
			t.Errorf("%d identities: %d deliveries, the last %+v", n, len(got), got[len(got)-1])
		}
	}
}
