package contextkind_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/test/testkit"
)

// shoots is a ContextKind with all that one can have.
func shoots() v1alpha1.ContextKindSpec {
	return v1alpha1.ContextKindSpec{
		Object:   v1alpha1.ContextResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots", Kind: "Shoot"},
		Claim:    "shoot",
		Clusters: "[object.spec.?seedName, object.?status.?seedName].filter(s, s.hasValue()).map(s, s.value())",
		References: []v1alpha1.ContextReference{
			{Name: "dns", WorkloadIdentities: "object.spec.?dns.?providers.orValue([]).filter(p, has(p.workloadIdentity)).map(p, p.workloadIdentity.name)"},
			{Name: "extensions", WorkloadIdentities: "object.spec.?extensions.orValue([]).filter(e, has(e.workloadIdentity)).map(e, e.workloadIdentity.name)"},
		},
		Related: []v1alpha1.RelatedObject{{Claim: "project", Resource: "projects", Key: "candidate.spec.?namespace.orValue('')", Of: "object.metadata.namespace"}},
	}
}

func TestCompile(t *testing.T) {
	kind, errs := contextkind.Compile(shoots())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if kind.Resource.String() != "core.gardener.cloud/v1beta1, Resource=shoots" || !kind.Namespaced || kind.Related[0].Resource.Resource != "projects" {
		t.Errorf("compiled %+v", kind)
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ContextKindSpec)
		want   string
	}{
		"syntax":           {func(s *v1alpha1.ContextKindSpec) { s.Clusters = "object.spec[" }, "spec.clusters: Invalid value: \"object.spec[\": does not compile"},
		"another variable": {func(s *v1alpha1.ContextKindSpec) { s.Related[0].Key = "object.metadata.name" }, "spec.related[0].key: Invalid value: \"object.metadata.name\": does not compile, with the variable candidate alone"},
		"a wrong type":     {func(s *v1alpha1.ContextKindSpec) { s.References[0].WorkloadIdentities = "'a'" }, "must evaluate to list(string), and not to string"},
		"a wrong entry":    {func(s *v1alpha1.ContextKindSpec) { s.Clusters = "[1, 2]" }, "must evaluate to list(string), and not to list(int)"},
		"a list as key":    {func(s *v1alpha1.ContextKindSpec) { s.Related[0].Of = "['a']" }, "spec.related[0].of"},
		"nothing":          {func(s *v1alpha1.ContextKindSpec) { s.References[0].WorkloadIdentities = "" }, "spec.references[0].workloadIdentities: Required"},
		"too long":         {func(s *v1alpha1.ContextKindSpec) { s.Clusters = "['" + strings.Repeat("a", 4096) + "']" }, "is 4100 characters long, at most 4096"},
		"too much":         {func(s *v1alpha1.ContextKindSpec) { s.Clusters = nested(4) }, "costs too much"},
		"deep":             {func(s *v1alpha1.ContextKindSpec) { s.Clusters = strings.Repeat("[", 400) + strings.Repeat("]", 400) }, "spec.clusters"},
		"no reference":     {func(s *v1alpha1.ContextKindSpec) { s.References = nil }, "spec.references: Required"},
		"both":             {func(s *v1alpha1.ContextKindSpec) { s.References[0].CredentialsBindings = "['a']" }, "spec.references[0].workloadIdentities: Forbidden"},
		"many references":  {func(s *v1alpha1.ContextKindSpec) { s.References = make([]v1alpha1.ContextReference, 21) }, "spec.references: Too many"},
		"one name twice":   {func(s *v1alpha1.ContextKindSpec) { s.References[1].Name = "dns" }, "spec.references[1].name: Duplicate"},
		"no claim":         {func(s *v1alpha1.ContextKindSpec) { s.Claim = "" }, "spec.claim: Required"},
		"the cluster":      {func(s *v1alpha1.ContextKindSpec) { s.Claim = "seed" }, "spec.claim: Forbidden: the claim seed is reserved"},
		"the cluster, placed": {func(s *v1alpha1.ContextKindSpec) {
			s.Claim, s.Object.Scope = "seed", v1alpha1.ScopeCluster
		}, "spec.clusters: Forbidden: an object that is claimed as seed is on the WorkloadCluster of its name"},
		"a related cluster": {func(s *v1alpha1.ContextKindSpec) { s.Related[0].Claim = "seed" }, "spec.related[0].claim: Forbidden: the claim seed is reserved"},
		"the identity":      {func(s *v1alpha1.ContextKindSpec) { s.Related[0].Claim = "workloadIdentity" }, "spec.related[0].claim: Forbidden"},
		"the issuer":        {func(s *v1alpha1.ContextKindSpec) { s.Claim = "iss" }, "spec.claim: Forbidden"},
		"Kubernetes":        {func(s *v1alpha1.ContextKindSpec) { s.Claim = "kubernetes.io" }, "spec.claim: Forbidden"},
		"a malformed claim": {func(s *v1alpha1.ContextKindSpec) { s.Claim = "a b\n" }, "spec.claim: Invalid"},
		"one claim twice":   {func(s *v1alpha1.ContextKindSpec) { s.Related[0].Claim = "shoot" }, "spec.related[0].claim: Duplicate"},
		"Secrets":           {func(s *v1alpha1.ContextKindSpec) { s.Object = core("secrets", "Secret") }, "spec.object.resource: Forbidden: Secrets are never read"},
		"related Secrets": {func(s *v1alpha1.ContextKindSpec) {
			s.Object = core("configmaps", "ConfigMap")
			s.Related[0].Resource = "secrets"
		}, "spec.related[0].resource: Forbidden"},
		"service accounts": {func(s *v1alpha1.ContextKindSpec) { s.Object = core("serviceaccounts", "ServiceAccount") }, "spec.object.resource: Forbidden"},
		"identities":       {func(s *v1alpha1.ContextKindSpec) { s.Object.Group = "authentication.gardener.cloud" }, "spec.object.resource: Forbidden"},
		"a subresource":    {func(s *v1alpha1.ContextKindSpec) { s.Object.Resource = "shoots/status" }, "spec.object.resource: Invalid"},
		"no version":       {func(s *v1alpha1.ContextKindSpec) { s.Object.Version = "" }, "spec.object.version: Invalid"},
		"no kind":          {func(s *v1alpha1.ContextKindSpec) { s.Object.Kind = "" }, "spec.object.kind: Invalid"},
		"deliver nowhere": {func(s *v1alpha1.ContextKindSpec) {
			s.References[0].Deliver = delivered()
			s.Clusters = ""
		}, "spec.references[0].deliver: Forbidden: is delivered to the clusters of an object: set spec.clusters"},
		"no namespace":    {deliver(func(d *v1alpha1.ContextDeliver) { d.Namespace = "" }), "spec.references[0].deliver.namespace: Required"},
		"no Secret":       {deliver(func(d *v1alpha1.ContextDeliver) { d.SecretName = "" }), "spec.references[0].deliver.secretName: Required value: an expression in CEL with the variables object and reference"},
		"an early name":   {deliver(func(d *v1alpha1.ContextDeliver) { d.Namespace = "reference" }), "spec.references[0].deliver.namespace: Invalid value: \"reference\": does not compile, with the variable object alone"},
		"a list of names": {deliver(func(d *v1alpha1.ContextDeliver) { d.SecretName = "[reference]" }), "spec.references[0].deliver.secretName: Invalid value: \"[reference]\": must evaluate to string, and not to list(string)"},
		"one type":        {deliver(func(d *v1alpha1.ContextDeliver) { d.References = "'aws'" }), "spec.references[0].deliver.references: Invalid value: \"'aws'\": must evaluate to list(string)"},
		"a dear name":     {deliver(func(d *v1alpha1.ContextDeliver) { d.SecretName = nested(2) + "[0]" }), "at most 10000 is allowed"},
		"a scope":         {func(s *v1alpha1.ContextKindSpec) { s.Object.Scope = "Global" }, "spec.object.scope: Unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shoots()
			c.change(&spec)
			if _, errs := contextkind.Compile(spec); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("%v, want %q", errs, c.want)
			}
		})
	}
}

func delivered() *v1alpha1.ContextDeliver {
	return &v1alpha1.ContextDeliver{
		Namespace: "object.status.technicalID", SecretName: "'workloadidentity-dns-' + reference",
		References: "object.spec.?dns.?providers.orValue([]).filter(p, has(p.workloadIdentity)).map(p, p.type)",
	}
}

// deliver changes a delivery of the first reference.
func deliver(change func(*v1alpha1.ContextDeliver)) func(*v1alpha1.ContextKindSpec) {
	return func(s *v1alpha1.ContextKindSpec) {
		s.References[0].Deliver = delivered()
		change(s.References[0].Deliver)
	}
}

func core(resource, kind string) v1alpha1.ContextResource {
	return v1alpha1.ContextResource{Version: "v1", Resource: resource, Kind: kind}
}

// nested is loops of a list in each other.
func nested(depth int) string {
	if depth == 0 {
		return "['a']"
	}
	return "object.spec.list.filter(x" + string(rune('a'+depth)) + ", size(" + nested(depth-1) + ") > 0)"
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	testkit.Must(t, json.Unmarshal([]byte(text), &object))
	return object
}

func TestUses(t *testing.T) {
	dns := func(names ...string) string {
		var providers []string
		for _, name := range names {
			providers = append(providers, `{"workloadIdentity":{"name":"`+name+`"}}`)
		}
		return `{"metadata":{"namespace":"fruit"},"spec":{"seedName":"east","dns":{"providers":[` + strings.Join(providers, ",") + `]}}}`
	}
	for name, c := range map[string]struct {
		object     string
		identities string
		fault      string
		clusters   []string
	}{
		"one":                {dns("banana"), "fruit/banana", "", []string{"east"}},
		"one twice":          {dns("banana", "banana", "fruit/banana"), "fruit/banana", "", []string{"east"}},
		"none":               {dns(), "", "", []string{"east"}},
		"moving":             {`{"metadata":{"namespace":"fruit"},"spec":{"seedName":"east"},"status":{"seedName":"west"}}`, "", "", []string{"east", "west"}},
		"placed nowhere":     {`{"metadata":{"namespace":"fruit"},"spec":{}}`, "", "", []string{}},
		"another namespace":  {dns("other/banana"), "", `reference dns: "other/banana" is in another namespace than the object`, []string{"east"}},
		"no name":            {dns("../x"), "", `reference dns: "../x" is not a name`, []string{"east"}},
		"a number":           {`{"metadata":{"namespace":"fruit"},"spec":{"dns":{"providers":[{"workloadIdentity":{"name":1}}]}}}`, "", "entry 0 of the list is of type", []string{}},
		"a fault and a good": {`{"metadata":{"namespace":"fruit"},"spec":{"dns":{"providers":[{"workloadIdentity":{}}]},"extensions":[{"workloadIdentity":{"name":"kiwi"}}]}}`, "fruit/kiwi", "reference dns: no such key: name", []string{}},
		"too many":           {dns(strings.Split(strings.Repeat("a,", 100)+"a", ",")...), "", "the list has 101 entries, at most 100", []string{"east"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind, errs := contextkind.Compile(shoots())
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			object := decode(t, c.object)
			got := kind.Uses(t.Context(), object, "fruit")
			var names []string
			for _, identity := range got.Identities {
				names = append(names, identity.String())
			}
			if strings.Join(names, " ") != c.identities || !slices.Equal(got.Clusters, c.clusters) || (got.Fault == "") != (c.fault == "") || !strings.Contains(got.Fault, c.fault) {
				t.Errorf("uses %+v, want %+v", got, c)
			}
			if want := []contextkind.Key{{Text: "fruit"}}; !slices.Equal(got.Keys, want) {
				t.Errorf("keys %v, want %v", got.Keys, want)
			}
		})
	}
}

// An object without namespace names identities in full.
func TestUsesOfAClusterScopedObject(t *testing.T) {
	spec := shoots()
	spec.Object.Scope, spec.Clusters, spec.Related = v1alpha1.ScopeCluster, "", nil
	spec.References = []v1alpha1.ContextReference{{Name: "all", WorkloadIdentities: "object.spec.identities"}}
	kind, errs := contextkind.Compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := kind.Uses(t.Context(), decode(t, `{"spec":{"identities":["garden/backup"]}}`), "")
	if want := (contextkind.Uses{Identities: []types.NamespacedName{{Namespace: "garden", Name: "backup"}}}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	spec.References[0] = v1alpha1.ContextReference{Name: "bound", CredentialsBindings: "object.spec.identities"}
	if kind, errs := contextkind.Compile(spec); len(errs) > 0 {
		t.Error(errs)
	} else if got := kind.Uses(t.Context(), decode(t, `{"spec":{"identities":["garden/backup"]}}`), ""); len(got.Identities) > 0 || !cmp.Equal(got.Bindings, []types.NamespacedName{{Namespace: "garden", Name: "backup"}}) {
		t.Errorf("by a binding: %+v", got)
	}
	if got := kind.Uses(t.Context(), decode(t, `{"spec":{"identities":["backup"]}}`), ""); len(got.Identities) > 0 || !strings.Contains(got.Fault, "names no namespace") {
		t.Errorf("%+v, want a fault", got)
	}
	if got := kind.Uses(t.Context(), decode(t, `{"spec":{"identities":{"a":1}}}`), ""); !strings.Contains(got.Fault, "is of type map, and not a list of strings") {
		t.Errorf("%+v, want a fault", got)
	}
}

// An object larger than was assumed ends the evaluation, and not the process.
func TestCostOfAnEvaluation(t *testing.T) {
	spec := shoots()
	spec.Clusters = "object.list.filter(x, object.list.exists(y, y == x + 'z'))"
	kind, errs := contextkind.Compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	text := testkit.Need(json.Marshal(map[string]any{"list": slices.Repeat([]string{"abcdefgh"}, 5000), "metadata": map[string]any{"namespace": "fruit"}, "spec": map[string]any{}}))(t)
	if got := kind.Uses(t.Context(), decode(t, string(text)), "fruit"); len(got.Clusters) > 0 || !strings.Contains(got.ClustersFault, "cost limit exceeded") {
		t.Errorf("clusters %v, fault %q, want one of the cost", got.Clusters, got.ClustersFault)
	}
}

// Of two ContextKinds a claim and a kind mean the same.
func TestConflict(t *testing.T) {
	other := func(change func(*v1alpha1.ContextKindSpec)) *contextkind.Kind {
		spec := shoots()
		spec.Object.Resource, spec.Object.Kind, spec.Claim = "backupentries", "BackupEntry", "backupEntry"
		change(&spec)
		kind, errs := contextkind.Compile(spec)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return kind
	}
	own := other(func(s *v1alpha1.ContextKindSpec) { *s = shoots() })
	for want, change := range map[string]func(*v1alpha1.ContextKindSpec){
		"":                  func(*v1alpha1.ContextKindSpec) {},
		"the claim shoot":   func(s *v1alpha1.ContextKindSpec) { s.Claim = "shoot" },
		"the claim project": func(s *v1alpha1.ContextKindSpec) { s.Related[0].Resource = "seeds" },
		"the kind Shoot":    func(s *v1alpha1.ContextKindSpec) { s.Object.Kind = "Shoot" },
	} {
		if got := own.Conflict(other(change)); got != want {
			t.Errorf("conflict %q, want %q", got, want)
		}
		if got := other(change).Conflict(own); got != want {
			t.Errorf("the other way: conflict %q, want %q", got, want)
		}
	}
}

func FuzzUses(f *testing.F) {
	kind, errs := contextkind.Compile(shoots())
	if len(errs) > 0 {
		f.Fatal(errs)
	}
	for _, seed := range []string{`{}`, `{"spec":null}`, `{"spec":{"seedName":1,"dns":{"providers":[{"workloadIdentity":{"name":"a"}}]}},"metadata":{"namespace":"fruit"}}`, `{"spec":{"dns":[],"extensions":{"a":"b"}},"status":""}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		for _, identity := range kind.Uses(t.Context(), object, "fruit").Identities {
			if identity.Namespace != "fruit" || identity.Name == "" {
				t.Errorf("%s uses %s", text, identity)
			}
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"object.spec.list", "[", "['a']", "object.map(x, x)", "\x00", "dyn(1)", "[1,2].map(x, [x])", "object.?a.orValue([])"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec := shoots()
		spec.References = []v1alpha1.ContextReference{{Name: "fuzz", WorkloadIdentities: text}}
		kind, errs := contextkind.Compile(spec)
		if len(errs) > 0 {
			return
		}
		kind.Uses(t.Context(), decode(t, `{"spec":{"list":["a"]}}`), "fruit")
	})
}
