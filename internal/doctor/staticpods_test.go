package doctor

import "testing"

func TestStaticPods(t *testing.T) {
	pod := func(name, node, context string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {namespace: kube-system, name: " + name + ", annotations: {kubernetes.io/config.mirror: x}}\n" +
			"spec: {nodeName: " + node + ", containers: [{name: main" + context + "}]}\nstatus: {containerStatuses: [{name: main, state: {running: {}}}]}"
	}
	node := func(name, runtime string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\nstatus: {nodeInfo: {containerRuntimeVersion: '" + runtime + "'}}"
	}
	nodes := joined(node("one", "containerd://2.1.4+credence-guard"), node("two", "containerd://2.1.4+other"))
	bare := joined(pod("a", "one", ""), pod("b", "two", ""))
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"with a context": {joined(nodes, pod("a", "two", ", securityContext: {runAsNonRoot: true}")), []string{"pass: no container of 1 static pod runs without a security context"}},
		"without":        {joined(nodes, bare), []string{"warn: on nodes without a guard: kube-system/b", "pass: which tightens what it creates unless its file lists it: kube-system/a"}},
		"nodes unread":   {joined(bare, deny("list", "nodes")), []string{"warn: you may not list nodes, which show whether they have a guard: kube-system/a, kube-system/b"}},
		"none":           {nodes, nil},
		"pods unread":    {joined(bare, deny("list", "pods")), []string{"skipped: you may not list pods in namespace kube-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			checkStaticPods(t.Context(), found, open(t, test.objects), []string{"kube-system"})
			expect(t, found, test.want...)
		})
	}
}

func TestProfiles(t *testing.T) {
	profile := func(labels, spec, status string) string {
		return "apiVersion: accounts.credence.dev/v1alpha1\nkind: ServiceAccountProfile\nmetadata: {namespace: team, name: app, generation: 2, labels: {" + labels + "}}\nspec: {" + spec + "}\nstatus: {" + status + "}"
	}
	const ready = "conditions: [{type: Ready, status: 'True', observedGeneration: 2}]"
	drifted := func(reason string) string {
		return "pods: {total: 5, outOfSpec: 2}, conditions: [{type: Ready, status: 'True', observedGeneration: 2}, {type: InSpec, status: 'False', reason: " + reason + "}]"
	}
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"applied":         {profile("", "", ready), []string{"pass: 1 profile is applied, and all pods match"}},
		"not seen":        {profile("", "", "conditions: [{type: Ready, status: 'True', observedGeneration: 1}]"), []string{"warn: no process has looked at profiles: team/app"}},
		"not ready":       {profile("", "", "conditions: [{type: Ready, status: 'False', reason: TemplateMissing, observedGeneration: 2}]"), []string{"warn: profiles cannot be applied: team/app (TemplateMissing)"}},
		"drifted":         {profile("", "", drifted("PodsOutOfSpec")), []string{"warn: no longer match the profile of their account: team/app (2 of 5)"}},
		"stopped":         {profile("", "", drifted("EvictionsStopped")), []string{"warn: (2 of 5)", "warn: running pods are not replaced any more: team/app (EvictionsStopped)"}},
		"without a label": {profile("", "workloadIdentities: [store]", ready), []string{"fail: profiles list identities in namespaces without the label"}},
		"too many":        {profile("accounts.credence.dev/guarded-by: webhook", "", ready), []string{"warn: the webhook alone guards profiles of namespaces with more than 20: team (1 profile)"}},
		"no right":        {deny("list", "serviceaccountprofiles"), []string{"skipped: you may not list serviceaccountprofiles"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			checkProfiles(t.Context(), found, open(t, test.objects), "", map[string]bool{})
			expect(t, found, test.want...)
		})
	}
}

// A controller that may use every service account needs a policy for the authors of its kinds, and an account that no tenant can become.
func TestOperatorsOfACluster(t *testing.T) {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	controllers := rbac + "ClusterRoleBinding\nmetadata: {name: o}\nroleRef: {kind: ClusterRole, name: 'credence:controllers'}\nsubjects: [{kind: ServiceAccount, namespace: argo, name: rollouts}]"
	watches := joined(rbac+"ClusterRole\nmetadata: {name: w}\nrules: [{apiGroups: [argoproj.io], resources: [rollouts], verbs: [watch]}]",
		rbac+"ClusterRoleBinding\nmetadata: {name: w}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: w}\nsubjects: [{kind: ServiceAccount, namespace: argo, name: rollouts}]")
	const policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: credence-account-use-rollouts.argoproj.io}"
	tenant := joined(rbac+"Role\nmetadata: {namespace: argo, name: exec}\nrules: [{apiGroups: [''], resources: [pods/exec], verbs: [create]}]",
		rbac+"RoleBinding\nmetadata: {namespace: argo, name: exec}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: exec}\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}]")
	home := namespace("argo", "")
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"none":              {home, []string{"pass: 0 controllers beside Kubernetes' own"}},
		"with a policy":     {joined(home, controllers, watches, policy), []string{"pass: 1 controller"}},
		"without one":       {joined(home, controllers, watches), []string{"warn: no policy checks the authors of its kinds"}},
		"beside a tenant":   {joined(home, controllers, watches, policy, tenant), []string{"warn: which may use every service account: jane (pods/exec, by"}},
		"no right":          {deny("list", "clusterrolebindings"), []string{"skipped: you may not read policies, roles and their bindings"}},
		"of a place unread": {joined(home, controllers, deny("get", "namespaces")), []string{"skipped: you may not get namespace argo"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			checkOperators(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
}
