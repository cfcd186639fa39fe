package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
)

const quotaReviewsPath = "/apis/identity.credence.dev/v1alpha1/quotareviews"

// Shoots that name a binding with Quotas are counted when they are written, by three replicas of the server as by one. It runs alone: the kinds are
// of the whole cluster.
func TestPlaneQuotasOfShoots(t *testing.T) {
	p := alone(t)
	p.quotasOfShoots(t, p.etcdOf())
}

// quotasOfShoots counts Shoots on a plane, with two more replicas on its storage.
func (p plane) quotasOfShoots(t *testing.T, storage map[string]string) {
	t.Helper()
	p.landscapesInstalled(t)
	ours := p.namespace(t)
	authentication := "/apis/authentication.gardener.cloud/v1alpha1/namespaces/" + ours
	shoots := gardenerAPI + "/namespaces/" + ours + "/shoots"
	limit := func(name, spec string) {
		t.Helper()
		p.made(t, authentication+"/quotas", "Quota", "name: "+name, "spec: {scope: {apiVersion: v1, kind: Secret}, "+spec+"}")
	}
	limit("machines", "metrics: {machines: 10, objects: 100}")
	limit("trial", "clusterLifetimeDays: 14")
	limit("many", "metrics: {objects: 7}")
	bind := func(name string) response {
		return do(t, p.config(t), "POST", authentication+"/credentialsbindings", "application/yaml", fmt.Sprintf(
			"{apiVersion: authentication.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: %s}, provider: {type: aws}, secretRef: {name: static}, quotas: [{name: %s}]}", name, name))
	}
	must(t, wantAnswer(bind("machines"), 422, "kubectl label namespace "+ours+" identity.credence.dev/quotas=enabled"))
	if _, stderr, code := p.command(t, "", "kubectl", "label", "namespace", ours, "identity.credence.dev/quotas=yes"); code == 0 || !strings.Contains(stderr, "with the value enabled alone") {
		t.Errorf("another value of the label: %d %s", code, stderr)
	}
	p.must(t, "", "kubectl", "label", "namespace", ours, "identity.credence.dev/quotas=enabled")
	for _, name := range []string{"machines", "trial", "many"} {
		eventually(t, func() error { return wantAnswer(bind(name), 201, "") })
	}
	body := func(name, binding, metadata string, machines int) string {
		return fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: %s%s}, spec: {credentialsBindingName: %s, provider: {workers: [{name: w, maximum: %d}]}}}", name, metadata, binding, machines)
	}
	write := func(query, name, binding, metadata string, machines int) response {
		return do(t, p.config(t), "POST", shoots+query, "application/yaml", body(name, binding, metadata, machines))
	}
	machines := func(n int) string {
		return fmt.Sprintf(`{"spec":{"provider":{"workers":[{"name":"w","maximum":%d}]}}}`, n)
	}
	want := func(what string, answer func() response, code int, words string) {
		t.Helper()
		eventually(t, func() error { // until the server has read the kinds and their objects
			got := answer()
			err := wantAnswer(got, code, words)
			if err == nil {
				return nil
			}
			if err = fmt.Errorf("%s: %w", what, err); got.Code < 300 && code >= 400 { // a second answer would refuse what the first let through
				return fatal{err}
			}
			return err
		})
	}
	const dry = "?dryRun=All"
	want("a dry run", func() response { return write(dry, "one", "machines", "", 8) }, 201, "")
	want("the first", func() response { return write("", "one", "machines", "", 6) }, 201, "")
	lists := "Quota " + ours + "/machines, which CredentialsBinding " + ours + "/machines lists: machines: "
	want("too much", func() response { return write("", "two", "machines", "", 5) }, 403, lists+"the object needs 5, others use 6, together 11 of 10")
	want("the rest", func() response { return write("", "two", "machines", "", 4) }, 201, "")
	patch := func(name, patch string) func() response {
		return func() response { return do(t, p.config(t), "PATCH", shoots+"/"+name, mergePatch, patch) }
	}
	want("growing", patch("one", machines(7)), 403, lists+"the object needs 7, others use 4, together 11 of 10")
	want("shrinking", patch("one", machines(5)), 200, "")
	want("a binding that is not there", func() response { return write("", "free", "none", "", 100) }, 403, "CredentialsBinding "+ours+"/none, to which it refers, does not exist")
	p.made(t, authentication+"/credentialsbindings", "CredentialsBinding", "name: none", "provider: {type: aws}, secretRef: {name: static}")
	want("moving into it", func() response { return write("", "free", "none", "", 100) }, 201, "")
	want("moved into it", patch("free", `{"spec":{"credentialsBindingName":"machines"}}`), 403, "the object needs 100")
	want("deleting", func() response { return do(t, p.config(t), "DELETE", shoots+"/two", "", "") }, 200, "")
	expect(t, wantAnswer(write("", "three", "machines", "", 5), 201, ""), "right after a deletion")
	want("without a number of machines", patch("one", `{"spec":{"provider":{"workers":[{"name":"w"}]}}}`), 403,
		strings.TrimSuffix(lists, "machines: ")+"what Shoot "+ours+"/one uses is not known: spec.usage of ContextKind shoots.core.gardener.cloud: no such key: maximum")
	want("without an end", func() response { return write(dry, "trial", "trial", "", 1) }, 403, "the object must state when it ends: it may live 14 days")
	want("with an end", func() response {
		return write(dry, "trial", "trial", ", annotations: {shoot.gardener.cloud/expiration-timestamp: '2020-01-01T00:00:00Z'}", 1)
	}, 201, "")

	// Twelve writers at once: what is stored is what the limit allows, in whatever order.
	want("room for four", patch("three", machines(1)), 200, "")
	var stored atomic.Int64
	var writers sync.WaitGroup
	for i := range 12 {
		writers.Go(func() {
			switch answer := write("", fmt.Sprint("at-once-", i), "machines", "", 1); {
			case answer.Code == 201:
				stored.Add(1)
			case answer.Code != 403:
				t.Errorf("at once: %d %s", answer.Code, answer.Body)
			}
		})
	}
	writers.Wait()
	if stored.Load() != 4 {
		t.Errorf("%d Shoots are stored, want 4", stored.Load())
	}
	// Three replicas, called at once as the webhook calls them.
	config := p.config(t)
	replicas := []*rest.Config{config, p.replica(t, storage), p.replica(t, storage)}
	review := func(replica *rest.Config, name, query string) response {
		object := map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"name": name, "namespace": ours}, "spec": map[string]any{"credentialsBindingName": "many"}}
		text, err := json.Marshal(map[string]any{"apiVersion": "identity.credence.dev/v1alpha1", "kind": "QuotaReview", "spec": map[string]any{"request": name, "group": "core.gardener.cloud", "resource": "shoots", "object": object}})
		expect(t, err)
		return do(t, replica, "POST", quotaReviewsPath+query, "application/json", string(text))
	}
	for _, replica := range replicas {
		want("a replica", func() response { return review(replica, "ready", dry) }, 201, `"allowed":true`)
	}
	var allowed atomic.Int64
	for i := range 30 {
		writers.Go(func() {
			switch answer := review(replicas[i%3], fmt.Sprint("replica-", i), ""); {
			case answer.Code != 201:
				t.Errorf("at a replica: %d %s", answer.Code, answer.Body)
			case strings.Contains(string(answer.Body), `"allowed":true`):
				allowed.Add(1)
			}
		})
	}
	writers.Wait()
	if allowed.Load() != 7 {
		t.Errorf("three replicas have let %d Shoots through, want 7", allowed.Load())
	}
	want("another one, meanwhile", func() response { return write(dry, "late", "many", "", 1) }, 403, "objects: the object needs 1, others use 7, together 8 of 7")
	expect(t, wantAnswer(review(p.as(t, "jane-"+ours), "theirs", ""), 403, "cannot create resource"), "a user who is not the webhook")

	// The status has what is stored; a user's is not taken.
	if answer := do(t, p.config(t), "PATCH", authentication+"/quotas/machines", mergePatch, `{"status":{"used":{"machines":"1"}}}`); answer.Code != 200 {
		t.Errorf("a status of a user: %d %s", answer.Code, answer.Body)
	}
	eventually(t, func() error {
		row := p.must(t, "", "kubectl", "get", "-n", ours, "quotas.authentication.gardener.cloud", "machines")
		whole := p.must(t, "", "kubectl", "describe", "-n", ours, "quotas.authentication.gardener.cloud", "machines")
		if !strings.Contains(row, "machines: 10/10, objects: 6/100") || !strings.Contains(whole, "WithinLimits") || strings.Contains(whole, "Reserved:") {
			return fmt.Errorf("kubectl get:\n%s\nkubectl describe:\n%s", row, whole)
		}
		return nil
	})

	p.explainsQuotas(t, ours)

	// Nothing is written while it cannot be counted, but for objects that do not name such bindings and are elsewhere.
	p.must(t, "", "kubectl", "delete", "clusterrolebinding", "credence:webhook:quotas")
	t.Cleanup(func() {
		p.must(t, "", "kubectl", "create", "clusterrolebinding", "credence:webhook:quotas", "--clusterrole=credence:webhook:quotas", "--serviceaccount=credence-system:credence-webhook")
	})
	want("without a count", func() response { return write(dry, "uncounted", "many", "", 1) }, 500, "credence could not decide about shoots "+ours+"/uncounted, which may be right: review Quotas")
	want("what is not counted", patch("one", `{"metadata":{"labels":{"a":"b"}}}`), 200, "")
	want("deleting, meanwhile", func() response { return do(t, config, "DELETE", shoots+"/one", "", "") }, 200, "")
}

// explainsQuotas shows the Quotas of a Shoot to those who may get them.
func (p plane) explainsQuotas(t *testing.T, namespace string) {
	t.Helper()
	p.made(t, gardenerAPI+"/namespaces/"+namespace+"/shoots", "Shoot", "name: trial, annotations: {shoot.gardener.cloud/expiration-timestamp: '2020-01-01T00:00:00Z'}", "spec: {credentialsBindingName: trial}")
	of := func(name string, more ...string) []string {
		return append([]string{"context", "shoots.core.gardener.cloud/" + name, "-n", namespace}, more...)
	}
	by := func(name string) string {
		return "quota     " + namespace + "/" + name + " by CredentialsBinding " + namespace + "/" + name + ": "
	}
	p.explained(t, 1, []string{"  quotas\n", by("machines") + "machines 10 of 10, objects 6 of 100\n"}, of("one")...)
	p.explained(t, 1, []string{by("trial") + "a lifetime of 14 days\n"}, of("trial")...)
	p.explained(t, 1, []string{`"quotas": [`, `"used": {`, `"machines": "10"`}, of("one", "-o", "json")...)
	p.explained(t, 1, []string{"quotas:\n", "clusterLifetimeDays: 14"}, of("trial", "-o", "yaml")...)

	// Users who may not get what the Shoot refers to learn which right is missing.
	lea, max := "lea-"+namespace, "max-"+namespace
	rule := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get"}}
	}
	p.role(t, namespace, "sees-shoots", []rbacv1.PolicyRule{rule("core.gardener.cloud", "shoots")}, max)
	p.role(t, namespace, "sees-bindings", []rbacv1.PolicyRule{rule("core.gardener.cloud", "shoots"), rule("authentication.gardener.cloud", "credentialsbindings")}, lea)
	for user, words := range map[string]string{
		lea: "Quota " + namespace + "/machines, which CredentialsBinding " + namespace + "/machines lists, can't be shown: ",
		max: "which Quotas CredentialsBinding " + namespace + "/machines lists is not known: ",
	} {
		text := p.explained(t, 3, []string{"note        " + words, `User "` + user + `" cannot get resource`}, of("one", "--as", user)...)
		if strings.Contains(text, "  quotas\n") {
			t.Errorf("%s sees Quotas:\n%s", user, text)
		}
	}
}
