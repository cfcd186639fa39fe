package doctor

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/cluster"
)

func namespace(name, labels string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {" + labels + "}}"
}

func account(namespace, name, annotations string) string {
	return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: " + namespace + ", name: " + name + ", annotations: {" + annotations + "}}"
}

func pod(name, account, made string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {namespace: team, name: " + name + ", creationTimestamp: '2026-07-01T" + made + ":00Z'}\nspec: {serviceAccountName: " + account + "}"
}

const enabled = "identity.credence.dev/workload-identities: enabled"

func TestAnnotations(t *testing.T) {
	binding := func(role, account string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: '" + role + "', namespace: team}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '" + role + "'}\nsubjects: [{kind: ServiceAccount, namespace: credence-system, name: " + account + "}]"
	}
	bound := joined(binding("credence:agent:secrets", "credence-agent"), binding("credence:webhook:pods", "credence-webhook"))
	const agent, webhook = "pass: the agent may deliver tokens in 1 namespace", "pass: the webhook may count pods in 1 namespace"
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"all have an effect": {joined(namespace("team", enabled), bound, account("team", "app", "identity.credence.dev/workload-identities: 'a,b'")), []string{agent, webhook, "pass: those of 2 objects have an effect"}},
		"another value":      {namespace("team", "identity.credence.dev/workload-identities: 'true'"), []string{`fail: no effect with another value than enabled: team ("true")`}},
		"another delivery":   {namespace("team", "identity.credence.dev/delivery: vault"), []string{`fail: for which pods are refused: team ("vault")`}},
		"without the label":  {joined(namespace("team", ""), account("team", "app", "identity.credence.dev/workload-identities: a")), []string{"fail: so that their pods get none: team/app"}},
		"an empty name":      {joined(namespace("team", ""), account("team", "app", "identity.credence.dev/workload-identities: 'a,,b'")), []string{"fail: can't be understood, for which pods are refused: team/app"}},
		"not a name":         {joined(namespace("team", ""), account("team", "app", "identity.credence.dev/image-pull-identity: Bad_Name")), []string{`fail: no image is pulled by it: team/app ("Bad_Name")`}},
		"misspelt":           {joined(namespace("team", ""), account("team", "app", "identity.credence.dev/workload-identites: a")), []string{"warn: annotation identity.credence.dev/workload-identites of serviceaccount team/app"}},
		"of another object":  {namespace("team", "identity.credence.dev/mount-path: a"), []string{"warn: label identity.credence.dev/mount-path of namespace team"}},
		"another namespace":  {namespace("other", "a: b"), []string{"warn: namespace team does not exist"}},
		"a binding lacks":    {joined(namespace("team", enabled), binding("credence:agent:secrets", "other")), []string{"warn: the RoleBinding credence:agent:secrets gives something else", "warn: no RoleBinding credence:webhook:pods", "pass: "}},
		"no right to lists":  {joined(namespace("team", enabled), deny("list", "rolebindings"), deny("list", "pods"), deny("list", "serviceaccounts")), []string{"skipped: rolebindings", "skipped: serviceaccounts", "skipped: pods", "pass: "}},
		"an account made again": {joined(namespace("team", enabled), bound, strings.Replace(account("team", "app", "identity.credence.dev/workload-identities: a"), "name: app", "name: app, creationTimestamp: '2026-07-01T11:30:00Z'", 1),
			pod("old", "app", "11:29"), pod("new", "app", "11:31"), pod("another", "other", "11:29")), []string{agent, webhook, "pass: those of 5 objects", "warn: deleted and created again: tokens of the deleted account are refused: team/old"}},
		"no right at all": {deny("list", "namespaces"), []string{"skipped: you may not list namespaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			examination().checkAnnotations(t.Context(), found, open(t, test.objects), "team", "team")
			expect(t, found, test.want...)
		})
	}
}

// The label has no effect in namespaces of the system, and what was found there is returned for further checks.
func TestNamespacesWithTheLabel(t *testing.T) {
	found := &Diagnosis{}
	enabledThere, mirrored := examination().checkAnnotations(t.Context(), found, open(t, joined(namespace("kube-public", enabled), namespace("team", ""),
		"apiVersion: v1\nkind: Pod\nmetadata: {namespace: team, name: static, annotations: {kubernetes.io/config.mirror: x}}")), "", "team")
	expect(t, found, "warn: the label has no effect in some namespaces: kube-public", "pass: those of 3 objects")
	if diff := cmp.Diff(map[string]bool{"kube-public": true, "team": false}, enabledThere); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := slices.Collect(maps.Keys(mirrored)); !slices.Equal(got, []string{"team"}) {
		t.Errorf("mirror pods in %v", got)
	}
}

func TestAgentRights(t *testing.T) {
	const may = "{kind: Use, user: 'system:serviceaccount:credence-system:credence-agent', identity: a/, verb: "
	both := map[string]bool{"a": true, "b": true, "c": false, "kube-system": true}
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"in one of two":       {joined(may+"get}", may+"create}"), []string{"warn: the agent may not have tokens of their identities: b", "pass: 1 namespace"}},
		"not tokens":          {may + "get}", []string{"warn: identities: a, b"}},
		"that may not be had": {deny("create", "subjectaccessreviews"), []string{"skipped: or you may not create subjectaccessreviews"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, api := &Diagnosis{}, open(t, test.objects)
			checkAgentRights(t.Context(), found, cluster.Both{Workload: api, Identity: api}, "", both)
			expect(t, found, test.want...)
		})
	}
	found := &Diagnosis{}
	checkAgentRights(t.Context(), found, cluster.Both{Workload: open(t, ""), Identity: open(t, "")}, "", both)
	expect(t, found, "skipped: they are in another cluster")
}
