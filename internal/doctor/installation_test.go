package doctor

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/testkit"
)

// A file belongs to the part on which alone the chart makes it depend.
func TestParts(t *testing.T) {
	text := testkit.Need(os.ReadFile("../../deploy/chart/credence/templates/_helpers.tpl"))(t)
	_, files, _ := strings.Cut(string(text), `{{- define "credence.files" -}}`)
	files, _, _ = strings.Cut(files, "{{- define ")
	alone := map[string]string{"{{- if .Values.identities.enabled }}": "identities", "{{- if .Values.workloads.enabled }}": "workloads", "{{- if .Values.gmsa.enabled }}": "gMSA"}
	var conditions []string
	seen := 0
	for line := range strings.Lines(files) {
		line = strings.TrimSpace(line)
		file, listed := strings.CutPrefix(line, "- ")
		switch {
		case listed:
			want := ""
			if len(conditions) == 1 {
				want = alone[conditions[0]]
			}
			if seen++; partOf(file) != want {
				t.Errorf("%s is of the part %q, and by the chart of %q", file, partOf(file), want)
			}
		case strings.HasPrefix(line, "{{- if "):
			conditions = append(conditions, line)
		case line == "{{- else }}":
			conditions[len(conditions)-1] += line
		case line == "{{- end }}" && len(conditions) > 0:
			conditions = conditions[:len(conditions)-1]
		}
	}
	if seen < 20 {
		t.Errorf("the chart has %d files", seen)
	}
}

func TestMissingRights(t *testing.T) {
	rule := func(groups, resources, names, verbs string) rbacv1.PolicyRule {
		list := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }) }
		return rbacv1.PolicyRule{APIGroups: strings.Split(groups, " "), Resources: list(resources), ResourceNames: list(names), Verbs: list(verbs)}
	}
	for name, c := range map[string]struct{ want, have, missing []string }{
		"equal":              {[]string{"||pods||get list"}, []string{"||pods||list get"}, nil},
		"no rule":            {[]string{"||pods||get list"}, nil, []string{"get, list on pods"}},
		"a verb":             {[]string{"|apps|deployments||get list"}, []string{"|apps|deployments||get"}, []string{"list on deployments.apps"}},
		"any verb":           {[]string{"||pods||get list"}, []string{"||pods||*"}, nil},
		"another group":      {[]string{"|apps|deployments||get"}, []string{"||deployments||get"}, []string{"get on deployments.apps"}},
		"a name of those":    {[]string{"||secrets|a b|get"}, []string{"||secrets|a|get"}, []string{"get on secrets b"}},
		"of one name alone":  {[]string{"||secrets||get"}, []string{"||secrets|a|get"}, []string{"get on secrets"}},
		"of more than named": {[]string{"||secrets|a|get"}, []string{"||secrets||get"}, nil},
		"a subresource":      {[]string{"||pods/status||patch"}, []string{"||pods||patch"}, []string{"patch on pods/status"}},
		"any subresource":    {[]string{"||pods/status||patch"}, []string{"||*/status||patch"}, nil},
		"in two rules":       {[]string{"||pods||get list"}, []string{"||pods||get", "||pods||list"}, nil},
	} {
		rules := func(texts []string) (rules []rbacv1.PolicyRule) {
			for _, text := range texts {
				f := strings.Split(text, "|")
				rules = append(rules, rule(f[1], f[2], f[3], f[4]))
			}
			return rules
		}
		if diff := cmp.Diff(c.missing, missingRights(rules(c.want), rules(c.have))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Rights that were added are named, apart from those of roles whose rules the cluster writes.
func TestAddedRights(t *testing.T) {
	role := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		testkit.Must(t, yaml.Unmarshal([]byte("kind: ClusterRole\nmetadata: {name: x}\n"+text), &o.Object))
		return o
	}
	rules := func(texts ...string) (have installed) {
		testkit.Must(t, yaml.Unmarshal([]byte("rules: ["+strings.Join(texts, ", ")+"]"), &have))
		return have
	}
	const pods, secrets, metrics = "{apiGroups: [''], resources: [pods], verbs: [get, list]}", "{apiGroups: [''], resources: [secrets], verbs: ['*']}", "{nonResourceURLs: [/metrics], verbs: [get]}"
	for name, test := range map[string]struct {
		manifest    string
		have        installed
		lacks, more []string
	}{
		"none":              {"rules: [" + pods + "]", rules(pods), nil, nil},
		"fewer":             {"rules: [" + pods + "]", rules(), []string{"ClusterRole x lacks get, list on pods"}, nil},
		"more":              {"rules: [" + pods + "]", rules(pods, secrets, metrics), nil, []string{"ClusterRole x has get on /metrics", "ClusterRole x has * on secrets"}},
		"others":            {"rules: [" + pods + "]", rules(secrets), []string{"ClusterRole x lacks get, list on pods"}, []string{"ClusterRole x has * on secrets"}},
		"by one name":       {"rules: [{apiGroups: [''], resources: [pods], resourceNames: [a], verbs: [get, list]}]", rules(pods), nil, []string{"ClusterRole x has get, list on pods"}},
		"in another form":   {"rules: [" + secrets + "]", rules("{apiGroups: [''], resources: [secrets], verbs: [get]}", secrets), nil, nil},
		"of an aggregation": {"aggregationRule: {}", rules(pods), nil, nil},
	} {
		lacks, more, err := differences(role(test.manifest), &test.have)
		if diff := cmp.Diff([][]string{test.lacks, test.more}, [][]string{lacks, more}); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Fields that may loosen a guard are additions, those that the API server has filled in are not.
func TestAdditions(t *testing.T) {
	guard := func(text string) (g map[string]any) {
		testkit.Must(t, yaml.Unmarshal([]byte(text), &g))
		return g
	}
	const written = "matchConstraints: {resourceRules: [{resources: [pods], operations: [CREATE]}]}\nvalidations: [{expression: 'true'}]\n"
	for added, want := range map[string][]string{
		"": nil,
		"failurePolicy: Fail\ntimeoutSeconds: 10\nobjectSelector: {}\nmatchConditions: []": nil,
		"matchConditions: [{name: x, expression: 'false'}]":                                {"x has matchConditions, which"},
		"matchResources: {namespaceSelector: {matchLabels: {a: b}}, matchPolicy: Exact}":   {"x has matchResources.matchPolicy, matchResources.namespaceSelector.matchLabels.a, which"},
		"failurePolicy: Ignore":             {"x has failurePolicy, which"},
		"validations: [{expression: 'no'}]": {"x is not that"},
		"matchConstraints: {excludeResourceRules: [{resources: [pods]}], resourceRules: [{resources: [pods], operations: [CREATE], scope: '*', resourceNames: [x]}]}": {"x has matchConstraints.excludeResourceRules, matchConstraints.resourceRules.resourceNames, which"},
		"matchConstraints: {resourceRules: [{resources: [pods], operations: [CREATE], scope: Cluster}]}":                                                              {"x has matchConstraints.resourceRules.scope, which"},
	} {
		have := guard(written)
		maps.Copy(have, guard(added))
		got := unequal("x", have, guard(written), "", "")
		if len(got) != len(want) || len(got) > 0 && !strings.HasPrefix(got[0], want[0]) {
			t.Errorf("%s: %q, want %q", added, got, want)
		}
	}
	ignores := guard("name: a.gmsa\nfailurePolicy: Ignore\nclientConfig: {caBundle: x}")
	for name, faults := range map[string]int{"webhook a.gmsa of ValidatingWebhookConfiguration credence-gmsa": 0, "webhook a of ValidatingWebhookConfiguration credence-templates": 1} {
		if got := unequal(name, ignores, guard("name: a.gmsa\nfailurePolicy: Fail\nclientConfig: {}"), "clientConfig", "failurePolicy"); len(got) != faults {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Fields that the API server has filled in are no difference; fields that others changed are.
func TestHolds(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		o := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			o[pairs[i].(string)] = pairs[i+1]
		}
		return o
	}
	want := object("a", "x", "list", []any{object("b", 1.0), "c"}, "empty", []any{})
	for name, c := range map[string]struct {
		have  any
		holds bool
	}{
		"equal":             {want, true},
		"filled in":         {object("a", "x", "list", []any{object("b", 1.0, "scope", "*"), "c"}, "policy", "Equivalent"), true},
		"changed":           {object("a", "y", "list", []any{object("b", 1.0), "c"}), false},
		"a field less":      {object("list", []any{object("b", 1.0), "c"}), false},
		"an entry less":     {object("a", "x", "list", []any{object("b", 1.0)}), false},
		"an entry more":     {object("a", "x", "list", []any{object("b", 1.0), "c", "d"}), false},
		"another order":     {object("a", "x", "list", []any{"c", object("b", 1.0)}), false},
		"of another type":   {object("a", []any{"x"}, "list", "c"), false},
		"changed in a list": {object("a", "x", "list", []any{object("b", 2.0), "c"}), false},
		"nothing":           {nil, false},
	} {
		if holds(c.have, want) != c.holds {
			t.Errorf("%s: %v, want %v", name, !c.holds, c.holds)
		}
	}
}

// A file of which nothing is installed belongs to a part that is not, unless others of its part are there.
func TestInstallation(t *testing.T) {
	const api = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
	const reader, writer = api + "metadata: {name: reader}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]", api + "metadata: {name: writer}\nrules: [{apiGroups: [''], resources: [pods], verbs: [update]}]"
	var manifests []Manifest
	for name, text := range map[string]string{"base/50-agent.yaml": reader, "base/53-webhooks.yaml": writer} {
		o := &unstructured.Unstructured{}
		testkit.Must(t, yaml.Unmarshal([]byte(text), &o.Object))
		manifests = append(manifests, Manifest{Name: name, Objects: []*unstructured.Unstructured{o}})
	}
	slices.SortFunc(manifests, func(a, b Manifest) int { return strings.Compare(a.Name, b.Name) })
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"nothing":    {"", []string{"skipped: none of the roles and policies that Credence installs is in the cluster"}},
		"all":        {joined(reader, writer), []string{"pass: 2 roles, bindings, policies"}},
		"a part":     {reader, []string{"fail: base/53-webhooks.yaml"}},
		"less":       {joined(writer, strings.Replace(reader, "get", "watch", 1)), []string{"fail: ClusterRole reader lacks get on pods", "warn: rights were added: ClusterRole reader has watch on pods"}},
		"not listed": {joined(reader, deny("list", "clusterroles")), []string{"skipped: you may not list roles"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, d := &Diagnosis{}, examination()
			d.Manifests = manifests
			d.checkInstallation(t.Context(), found, "installation", open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
	const released = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader, annotations: {meta.helm.sh/release-name: c, meta.helm.sh/release-namespace: s}}"
	found, d := &Diagnosis{}, examination()
	d.Manifests = manifests
	d.checkInstallation(t.Context(), found, "installation", open(t, released))
	for _, finding := range found.Findings {
		if !strings.Contains(finding.Hint, "helm upgrade c CHART -n s") {
			t.Errorf("the hint of an installation by Helm is %q", finding.Hint)
		}
	}
}
