package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The user who writes a name into an object needs the verb use on it, as the object gets tokens of it. It runs alone: the kinds are of the whole cluster.
func TestPlaneReferencesNeedUse(t *testing.T) {
	p := alone(t)
	p.landscapesInstalled(t)
	ours, stray := p.namespace(t), p.namespace(t)
	for _, namespace := range []string{ours, stray} {
		p.create(t, namespace, "mine", "aws", "a")
		p.create(t, namespace, "theirs", "aws", "a")
	}
	writer := "writer-" + ours
	use := func(resource, name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"use"}}
	}
	for _, namespace := range []string{ours, stray} {
		p.role(t, namespace, "writer", []rbacv1.PolicyRule{
			{APIGroups: []string{"core.gardener.cloud", "cluster.x-k8s.io"}, Resources: []string{"shoots", "clusters"}, Verbs: []string{"*"}},
			use("workloadidentities", "mine"), use("credentialsbindings", "mine"),
		}, writer)
	}
	p.clusterRole(t, writer, writer, rbacv1.PolicyRule{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{"seeds", "backupbuckets"}, Verbs: []string{"*"}})
	shoots, clusters := gardenerAPI+"/namespaces/"+ours+"/shoots", clusterAPI+"/namespaces/"+ours+"/clusters"
	seeds, buckets := gardenerAPI+"/seeds", gardenerAPI+"/backupbuckets"
	kinds := map[string]string{shoots: "core.gardener.cloud/v1beta1, kind: Shoot", seeds: "core.gardener.cloud/v1beta1, kind: Seed", buckets: "core.gardener.cloud/v1beta1, kind: BackupBucket", clusters: "cluster.x-k8s.io/v1beta2, kind: Cluster"}
	body := func(path, name, metadata, spec string) string {
		return fmt.Sprintf("{apiVersion: %s, metadata: {name: %s%s}, spec: {%s}}", kinds[path], name, metadata, spec)
	}
	create := func(path, metadata, spec string) response {
		return do(t, p.as(t, writer), "POST", path+"?dryRun=All", "application/yaml", body(path, "o-"+ours, metadata, spec))
	}
	annotated := func(key, value string) string { return fmt.Sprintf(", annotations: {%s: %q}", key, value) }
	const ids, bindings, on = "identity.credence.dev/workload-identities", "workloadidentity.authentication.gardener.cloud/binding", "identity.credence.dev/workload-clusters"
	ref := func(namespace, name string) string {
		return fmt.Sprintf("{kind: WorkloadIdentity, name: %s, namespace: %s}", name, namespace)
	}
	many := "workloadIdentity: {name: mine}"
	list := ""
	for i := range 9 {
		list += fmt.Sprintf("{type: t%d, %s}, ", i, many)
	}
	for what, test := range map[string]struct {
		path, metadata, spec string
		code                 int
		words                string
	}{
		"Shoot, without references":            {shoots, "", "seedName: s", 201, ""},
		"Shoot, DNS of GEP-26":                 {shoots, "", "dns: {providers: [{type: t, workloadIdentity: {name: theirs}}]}", 403, "may not refer to workloadidentities " + ours + "/theirs"},
		"Shoot, own DNS of GEP-26":             {shoots, "", "dns: {providers: [{type: t, workloadIdentity: {name: mine}}]}", 201, ""},
		"Shoot, in full":                       {shoots, "", "dns: {providers: [{type: t, workloadIdentity: {name: " + ours + "/theirs}}]}", 403, "workloadidentities " + ours + "/theirs"},
		"Shoot, extension":                     {shoots, "", "extensions: [{type: t, workloadIdentity: {name: mine}}, {type: u, workloadIdentity: {name: theirs}}, {type: v}]", 403, ours + "/theirs"},
		"Shoot, DNS of Gardener":               {shoots, "", "dns: {providers: [{type: t, credentialsRef: " + ref(ours, "theirs") + "}]}", 403, ours + "/theirs"},
		"Shoot, DNS by a Secret":               {shoots, "", "dns: {providers: [{type: t, credentialsRef: {kind: Secret, name: theirs}}]}", 201, ""},
		"Shoot, resources":                     {shoots, "", "resources: [{name: r, resourceRef: {kind: WorkloadIdentity, name: theirs}}]", 403, ours + "/theirs"},
		"Shoot, binding":                       {shoots, "", "credentialsBindingName: theirs", 403, "kubectl create rolebinding NAME -n " + ours + " --clusterrole=credence:credentialsbindings:user --user=" + writer},
		"Shoot, own binding":                   {shoots, "", "credentialsBindingName: mine", 201, ""},
		"Shoot, more than are compared":        {shoots, "", "extensions: [" + strings.Repeat("{type: t, "+many+"}, ", 257) + "]", 422, "may have 256 references"},
		"Shoot, more than can be checked":      {shoots, "", "extensions: [" + list + "]", 403, "adds 9 references"},
		"Seed, backup of GEP-26":               {seeds, "", "backup: {workloadIdentityRef: " + ref(ours, "theirs") + "}", 403, ours + "/theirs"},
		"Seed, own backup":                     {seeds, "", "backup: {workloadIdentityRef: " + ref(ours, "mine") + "}", 201, ""},
		"Seed, backup":                         {seeds, "", "backup: {credentialsRef: " + ref(stray, "theirs") + "}", 403, stray + "/theirs"},
		"Seed, DNS defaults":                   {seeds, "", "dns: {defaults: [{credentialsRef: " + ref(ours, "mine") + "}, {credentialsRef: " + ref(stray, "theirs") + "}]}", 403, stray + "/theirs"},
		"Seed, internal DNS":                   {seeds, "", "dns: {internal: {credentialsRef: " + ref(stray, "theirs") + "}}", 403, stray + "/theirs"},
		"Seed, resources":                      {seeds, "", "resources: [{name: r, resourceRef: {kind: WorkloadIdentity, name: theirs}}]", 403, "workloadidentities garden/theirs"},
		"Seed, backup by both":                 {seeds, "", "backup: {secretRef: {name: s, namespace: " + ours + "}, workloadIdentityRef: " + ref(ours, "mine") + "}", 422, "exactly one of the two"},
		"Seed, DNS by both":                    {seeds, "", "dns: {provider: {secretRef: {name: s, namespace: " + ours + "}, workloadIdentityRef: " + ref(ours, "mine") + "}}", 422, "exactly one of the two"},
		"Seed, a Secret, and an identity":      {seeds, "", "backup: {secretRef: {name: s, namespace: " + ours + "}}, dns: {provider: {workloadIdentityRef: " + ref(ours, "mine") + "}}", 201, ""},
		"BackupBucket by both":                 {buckets, "", "secretRef: {name: s, namespace: " + ours + "}, workloadIdentityRef: " + ref(ours, "mine"), 422, "exactly one of the two"},
		"BackupBucket":                         {buckets, "", "credentialsRef: " + ref(ours, "theirs"), 403, ours + "/theirs"},
		"BackupBucket of GEP-26":               {buckets, "", "workloadIdentityRef: " + ref(ours, "theirs"), 403, ours + "/theirs"},
		"own BackupBucket":                     {buckets, "", "credentialsRef: " + ref(ours, "mine"), 201, ""},
		"Cluster, without references":          {clusters, "", "", 201, ""},
		"Cluster, identities":                  {clusters, annotated(ids, "mine, theirs"), "", 403, "workloadidentities " + ours + "/theirs"},
		"Cluster, own identities":              {clusters, annotated(ids, "mine,"), "", 201, ""},
		"Cluster, bindings":                    {clusters, annotated(bindings, "theirs"), "", 403, "credentialsbindings " + ours + "/theirs"},
		"Cluster, own bindings":                {clusters, annotated(bindings, "mine"), "", 201, ""},
		"Cluster, placed on another cluster":   {clusters, annotated(on, "east"), "", 403, "--clusterrole=credence:workloadidentities:token-creator --user=" + writer},
		"Cluster, placed on no other cluster":  {clusters, annotated(on, " ,"), "", 201, ""},
		"Cluster, more names than compared":    {clusters, annotated(ids, strings.Repeat("a,", 128)), "", 422, "may each have 128 names"},
		"Cluster, names that cost seconds":     {clusters, fmt.Sprintf(", annotations: {%s: %q, %s: %q}", ids, strings.Repeat(",", 120_000), on, strings.Repeat(",", 120_000)), "", 422, "8192 characters"},
		"Cluster, an identity of no namespace": {clusters, annotated(ids, "/theirs"), "", 403, "workloadidentities /theirs"},
	} {
		eventually(t, func() error {
			if err := wantAnswer(create(test.path, test.metadata, test.spec), test.code, test.words); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}

	// References of another user stay, and new ones need the right.
	p.made(t, shoots, "Shoot", "name: s", "spec: {extensions: [{type: t, workloadIdentity: {name: theirs}}]}, status: {}")
	p.made(t, clusters, "Cluster", fmt.Sprintf("name: c, annotations: {%s: theirs, %s: east}", ids, on), "spec: {}")
	seed := "seed-" + ours
	p.made(t, seeds, "Seed", "name: "+seed, "spec: {backup: {credentialsRef: "+ref(ours, "theirs")+"}}")
	t.Cleanup(func() {
		p.must(t, "", "kubectl", "delete", "--ignore-not-found", "seeds.core.gardener.cloud", seed)
	})
	for _, test := range []struct {
		object, patch string
		code          int
		words         string
	}{
		{shoots + "/s", `{"spec":{"seedName":"x","dns":{"providers":[{"type":"d","workloadIdentity":{"name":"theirs"}},{"type":"e","workloadIdentity":{"name":"mine"}}]}}}`, 200, ""},
		{shoots + "/s", `{"spec":{"credentialsBindingName":"theirs"}}`, 403, "credentialsbindings " + ours + "/theirs"},
		{shoots + "/s", `{"spec":{"extensions":null}}`, 200, ""},
		{clusters + "/c", `{"metadata":{"annotations":{"` + ids + `":"mine,theirs"}},"spec":{"paused":true}}`, 200, ""},
		{clusters + "/c", `{"metadata":{"annotations":{"` + bindings + `":"theirs"}}}`, 403, "credentialsbindings " + ours + "/theirs"},
		{clusters + "/c", `{"metadata":{"annotations":{"` + on + `":"east,west"}}}`, 403, "may not add west to the annotation"},
		{clusters + "/c", `{"metadata":{"annotations":{"` + on + `":null}}}`, 200, ""},
		{seeds + "/" + seed, `{"spec":{"provider":{"type":"aws"}}}`, 200, ""},
		{seeds + "/" + seed, `{"spec":{"backup":{"credentialsRef":{"namespace":"` + stray + `"}}}}`, 403, stray + "/theirs"},
	} {
		if err := wantAnswer(do(t, p.as(t, writer), "PATCH", test.object, mergePatch, test.patch), test.code, test.words); err != nil {
			t.Errorf("%s of %s: %v", test.patch, test.object, err)
		}
	}
	p.role(t, ours, "placer", []rbacv1.PolicyRule{{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}}, writer)
	eventually(t, func() error {
		return wantAnswer(create(clusters, annotated(on, "east"), ""), 201, "")
	})
}

// A Shoot names its infrastructure credentials in exactly one of two fields, and a user who changes that may use the old and the new binding. It
// runs alone: the kinds are of the whole cluster.
func TestPlaneBindingsOfShoots(t *testing.T) {
	p := alone(t)
	p.landscapesInstalled(t)
	ours := p.namespace(t)
	writer := "writer-" + ours
	use := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{"mine", "mine-too"}, Verbs: []string{"use"}}
	}
	p.role(t, ours, "writer", []rbacv1.PolicyRule{
		{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{"shoots"}, Verbs: []string{"*"}},
		use("core.gardener.cloud", "secretbindings"), use("authentication.gardener.cloud", "credentialsbindings"),
	}, writer)
	shoots := gardenerAPI + "/namespaces/" + ours + "/shoots"
	const (
		workers  = "provider: {workers: [{name: w}]}"
		both     = "spec.secretBindingName is incompatible with spec.credentialsBindingName"
		neither  = "a Shoot with workers needs infrastructure credentials"
		byOld    = "secretBindingName: mine"
		byNew    = "credentialsBindingName: mine"
		oldTheir = "secretBindingName: theirs"
		newTheir = "credentialsBindingName: theirs"
	)
	refused := func(binding string) string {
		return fmt.Sprintf("%s may not change the binding of a Shoot from or to %s %s/theirs: that needs the verb use on it; a cluster admin gives it with: kubectl create rolebinding NAME -n %s --clusterrole=credence:%s:user --user=%s",
			writer, binding, ours, ours, binding, writer)
	}
	for what, test := range map[string]struct {
		spec  string
		code  int
		words string
	}{
		"an old binding":             {byOld + ", " + workers, 201, ""},
		"an old binding of others":   {oldTheir + ", " + workers, 201, ""},
		"a new binding":              {byNew + ", " + workers, 201, ""},
		"both":                       {byOld + ", " + byNew + ", " + workers, 422, both},
		"both, without workers":      {byOld + ", " + byNew, 422, both},
		"neither":                    {workers, 422, neither},
		"an empty name":              {`secretBindingName: "", ` + workers, 422, neither},
		"neither, without workers":   {"provider: {workers: []}", 201, ""},
		"a Shoot without a provider": {"seedName: s", 201, ""},
	} {
		eventually(t, func() error {
			body := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {%s}}", test.spec)
			if err := wantAnswer(do(t, p.as(t, writer), "POST", shoots+"?dryRun=All", "application/yaml", body), test.code, test.words); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}

	// Before the policy was there, a Shoot could have both, or neither.
	p.must(t, "", "kubectl", "delete", "validatingadmissionpolicybinding", "credence-bindings.core.gardener.cloud")
	post := func(query, name, spec string, code int) {
		t.Helper()
		eventually(t, func() error {
			body := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: %s}, spec: {%s}}", name, spec)
			return wantAnswer(do(t, p.config(t), "POST", shoots+query, "application/yaml", body), code, "")
		})
	}
	create := func(name, spec string) {
		t.Helper()
		post("", name, spec, 201)
	}
	create("both", byOld+", "+byNew+", "+workers)
	create("neither", workers)
	p.must(t, shipped(t, "deploy/options/gardener.yaml"), "kubectl", "apply", "-f", "-")
	post("?dryRun=All", "again", workers, 422)
	for name, spec := range map[string]string{"old": byOld, "new": byNew, "old-of-others": oldTheir, "new-of-others": newTheir} {
		create(name, spec+", "+workers)
	}
	create("workerless", "seedName: s")

	for _, test := range []struct {
		shoot, patch string
		code         int
		words        string
	}{
		{"old", `{"credentialsBindingName":"mine"}`, 422, both},
		{"old", `{"secretBindingName":null}`, 422, neither},
		{"old", `{"secretBindingName":"theirs"}`, 403, refused("secretbindings")},
		{"old", `{"secretBindingName":null,"credentialsBindingName":"theirs"}`, 403, "--clusterrole=credence:credentialsbindings:user"},
		{"old", `{"secretBindingName":null,"credentialsBindingName":"mine"}`, 200, ""},
		{"old", `{"credentialsBindingName":"mine-too"}`, 200, ""},
		{"old", `{"secretBindingName":"theirs","credentialsBindingName":null}`, 403, refused("secretbindings")},
		{"old", `{"secretBindingName":"mine","credentialsBindingName":null}`, 200, ""},
		{"old-of-others", `{"seedName":"x"}`, 200, ""},
		{"old-of-others", `{"secretBindingName":null,"credentialsBindingName":"mine"}`, 403, refused("secretbindings")},
		{"new-of-others", `{"seedName":"x"}`, 200, ""},
		{"new-of-others", `{"credentialsBindingName":"mine"}`, 403, refused("credentialsbindings")},
		{"new-of-others", `{"credentialsBindingName":null,"provider":null}`, 403, refused("credentialsbindings")},
		{"both", `{"seedName":"x"}`, 200, ""},
		{"both", `{"credentialsBindingName":"mine-too"}`, 422, both},
		{"both", `{"secretBindingName":null}`, 200, ""},
		{"neither", `{"seedName":"x"}`, 200, ""},
		{"neither", `{"credentialsBindingName":"mine"}`, 200, ""},
		{"workerless", `{"provider":{"workers":[{"name":"w"}]}}`, 422, neither},
		{"workerless", `{"provider":{"workers":[{"name":"w"}]},"credentialsBindingName":"mine"}`, 200, ""},
	} {
		eventually(t, func() error {
			if err := wantAnswer(do(t, p.as(t, writer), "PATCH", shoots+"/"+test.shoot, mergePatch, `{"spec":`+test.patch+`}`), test.code, test.words); err != nil {
				return fmt.Errorf("%s of %s: %w", test.patch, test.shoot, err)
			}
			return nil
		})
	}
}
