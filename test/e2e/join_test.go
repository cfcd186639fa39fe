package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// fromFile is the configuration of a kubeconfig.
func fromFile(t *testing.T, file string) *rest.Config {
	t.Helper()
	config := need(clientcmd.BuildConfigFromFlags("", file))(t)
	return config
}

// forgetClusters deletes the namespace of all clusters.
func (p plane) forgetClusters(t *testing.T) {
	eventually(t, func() error {
		if err := p.client(t).CoreV1().Namespaces().Delete(t.Context(), identityv1alpha1.WorkloadClusters, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace %s is still there: %v", identityv1alpha1.WorkloadClusters, err)
		}
		return nil
	})
}

// A cluster that joins has tokens that name it and the accounts of its pods, renews its own credentials and no others, and has nothing any more
// once it has left, or the Secret is gone that its credentials are bound to. It runs alone, as it deletes the namespace of all clusters.
func TestPlaneJoin(t *testing.T) {
	garden := aloneWithPlane(t)
	ours := garden.namespace(t)
	garden.awsIdentity(t, ours, "banana", "dev")
	defer garden.forgetClusters(t)
	name, folder := "j-"+ours, t.TempDir()
	join := func(name, folder string) {
		garden.must(t, "", "credence", "cluster", "join", name, "--identities", ours, "--out", folder)
	}
	join(name, folder)
	garden.must(t, "", "credence", "cluster", "check", name, "--credentials", folder)
	other := t.TempDir()
	join("other-"+ours, other)
	// A cluster that joined before the webhook's account was left out.
	garden.must(t, "", "kubectl", "patch", "workloadcluster", name, "--type=json", `-p=[{"op":"add","path":"/spec/users/-","value":"`+joined(name+"-webhook")+`"}]`)
	if out, _, code := garden.command(t, "", "credence", "cluster", "check", name); code != 1 || !strings.Contains(out, "workloadcluster.identity.credence.dev/"+name+" is not as joining makes it") {
		t.Errorf("check of a cluster with its webhook: exit code %d, %s", code, out)
	}
	join(name, folder)
	garden.must(t, "", "credence", "cluster", "check", name, "--credentials", folder)

	for _, file := range []string{"agent.token", "webhook.token"} {
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	agent, webhook := fromFile(t, filepath.Join(folder, "agent.kubeconfig")), fromFile(t, filepath.Join(folder, "webhook.kubeconfig"))
	tokenOf := func(as *rest.Config, account, spec string) response {
		return do(t, as, "POST", "/api/v1/namespaces/workload-clusters/serviceaccounts/"+account+"/token", "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{`+spec+`}}`)
	}
	bound := func(kind, name string, seconds int) string {
		return fmt.Sprintf(`"boundObjectRef":{"apiVersion":"v1","kind":%q,"name":%q},"expirationSeconds":%d`, kind, name, seconds)
	}
	const twoDays = 48 * 60 * 60
	own := bound("Secret", name, twoDays)
	for what, test := range map[string]struct {
		as            *rest.Config
		account, spec string
		code          int
		words         string
	}{
		"the agent, its own":            {agent, name + "-agent", own, http.StatusCreated, ""},
		"the agent, the webhook's":      {agent, name + "-webhook", own, http.StatusCreated, ""},
		"the agent, another cluster's":  {agent, "other-" + ours + "-agent", own, http.StatusForbidden, "cannot create resource"},
		"the agent, another account's":  {agent, "default", own, http.StatusForbidden, "cannot create resource"},
		"the webhook, the agent's":      {webhook, name + "-agent", own, http.StatusForbidden, "cannot create resource"},
		"bound to nothing":              {agent, name + "-agent", "", http.StatusForbidden, "must be bound to the Secret NAME: a cluster admin has credence cluster join NAME"},
		"bound to another's Secret":     {agent, name + "-agent", bound("Secret", "other-"+ours, twoDays), http.StatusForbidden, "must be bound to the Secret NAME"},
		"bound to a pod":                {agent, name + "-agent", bound("Pod", name, twoDays), http.StatusForbidden, "must be bound to the Secret NAME"},
		"for longer than two days":      {agent, name + "-agent", bound("Secret", name, twoDays+1), http.StatusForbidden, "valid for two days"},
		"an admin, bound to nothing":    {garden.config(t), name + "-agent", "", http.StatusForbidden, "may create no others"},
		"an admin, of the default one":  {garden.config(t), "default", bound("Secret", name, twoDays), http.StatusForbidden, "may create no others"},
		"an admin, as join requests it": {garden.config(t), name + "-agent", own, http.StatusCreated, ""},
	} {
		if err := wantAnswer(tokenOf(test.as, test.account, test.spec), test.code, test.words); err != nil {
			t.Errorf("a token, %s: %v", what, err)
		}
	}
	eternal := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"eternal","annotations":{"kubernetes.io/service-account.name":"` + name + `-agent"}},"type":"kubernetes.io/service-account-token"}`
	expect(t, wantAnswer(do(t, garden.config(t), "POST", "/api/v1/namespaces/workload-clusters/secrets", "application/json", eternal), http.StatusForbidden, "their tokens never expire"), "a Secret with a token")

	mayReview := func(p plane, want string) {
		t.Helper()
		for _, right := range [][]string{{"create", "tokenreviews"}, {"get", "pods", "-n", "default"}} {
			if out, _, _ := p.command(t, "", "kubectl", append([]string{"auth", "can-i", "--as", agentUser}, right...)...); out != want+"\n" {
				t.Errorf("an agent, %s: %q, want %s", right, out, want)
			}
		}
	}
	mayReview(garden, "no")
	podsPort := testkit.FreePort(t)
	seed := newPlane(t, "--arg", "agent=--identity-kubeconfig="+filepath.Join(folder, "agent.kubeconfig"), "--arg", "agent=--renew-in-secret", "--arg", "agent=--pods-port="+strconv.Itoa(podsPort), "--arg", "webhook=--identity-kubeconfig="+filepath.Join(folder, "webhook.kubeconfig"))
	mayReview(seed, "yes")
	seed.must(t, "", "kubectl", "create", "namespace", ours)
	seed.enable(t, ours)
	web := seed.accountOf(t, ours, "web", "banana")
	secret, _ := seed.awaitToken(t, ours, tokensecret.NameFor("web", "banana"), nil)
	_, c := claims(t, string(secret.Data[v1alpha1.SecretToken]))
	self := c["gardener.cloud"].(map[string]any)["seed"]
	want := map[string]any{"namespace": ours, "serviceaccount": map[string]any{"name": "web", "uid": string(web.UID)}, "cluster": self}
	if diff := cmp.Diff(any(want), c["kubernetes.io"]); diff != "" || self.(map[string]any)["name"] != name {
		t.Errorf("seed %v, kubernetes.io (-want +got):\n%s", self, diff)
	}
	seed.getsTokensByAgent(t, ours, podsPort, self)

	eventually(t, func() error {
		out := garden.must(t, "", "credence", "cluster", "list", "-o", "yaml")
		if !strings.Contains(out, "delivered: 1") || !strings.Contains(out, "oldest: \"20") {
			return fmt.Errorf("not reported yet:\n%s", out)
		}
		return nil
	})

	eventually(t, func() error {
		out := garden.must(t, "", "credence", "cluster", "check", name, "--credentials", folder)
		if !strings.Contains(out, "has all that it needs; last seen at 20") || !strings.Contains(out, ", with an agent of version ") {
			return fmt.Errorf("not seen yet:\n%s", out)
		}
		return nil
	})
	if out := garden.must(t, "", "kubectl", "get", "workloadclusters", name, "-o", "wide"); !strings.Contains(out, "SEEN") || strings.Contains(out, "never") {
		t.Errorf("kubectl get:\n%s", out)
	}
	// The status is the server's alone.
	if got := do(t, garden.config(t), "PATCH", workloadClustersPath+"/"+name, mergePatch, `{"status":{"lastSeenTime":"2000-01-01T00:00:00Z","agentVersion":"forged"}}`); got.Code != http.StatusOK || strings.Contains(string(got.Body), "forged") || strings.Contains(string(got.Body), "2000-") {
		t.Errorf("a status of a user: %d %s", got.Code, got.Body)
	}

	t.Log("its credentials in a Secret")
	garden.renewsInSecret(t, seed, name, folder)

	t.Log("leaving")
	ask := func(config *rest.Config) int {
		return do(t, config, "POST", tokenPath(ours, "banana"), "application/json", tokenRequest(`{}`)).Code
	}
	if got := ask(agent); got != http.StatusCreated {
		t.Fatalf("before it leaves: %d", got)
	}
	if got := ask(webhook); got != http.StatusForbidden {
		t.Errorf("a token for the webhook: %d", got)
	}
	out := garden.must(t, "", "credence", "cluster", "leave", name)
	if first, _, _ := strings.Cut(out, "\n"); first != "serviceaccount/"+name+"-agent deleted" || !strings.Contains(out, "have expired by 20") {
		t.Errorf("leave prints:\n%s", out)
	}
	gone := func(config *rest.Config) {
		t.Helper()
		eventually(t, func() error {
			if got := ask(config); got != http.StatusUnauthorized {
				return fmt.Errorf("%d, want 401", got)
			}
			return nil
		})
	}
	gone(agent)
	// A new cluster of the name is another one.
	join(name, t.TempDir())
	gone(agent)
	if _, stderr, code := garden.command(t, "", "credence", "cluster", "check", name, "--credentials", folder); code != 1 {
		t.Errorf("check with credentials of before: exit code %d, %s", code, stderr)
	}
	garden.must(t, "", "credence", "cluster", "leave", name)

	left := fromFile(t, filepath.Join(other, "agent.kubeconfig"))
	if got := ask(left); got != http.StatusCreated {
		t.Errorf("the other cluster: %d", got)
	}
	must(t, garden.client(t).CoreV1().Secrets(identityv1alpha1.WorkloadClusters).Delete(t.Context(), "other-"+ours, metav1.DeleteOptions{}))
	gone(left)
	garden.must(t, "", "credence", "cluster", "leave", "other-"+ours)
}

// renewsInSecret lets a cluster join again, with its credentials in its Secret, and copies them to the folder as a kubelet does that mounts it.
func (p plane) renewsInSecret(t *testing.T, seed plane, cluster, mounted string) {
	t.Helper()
	stored := seed.client(t).CoreV1().Secrets("credence-system")
	if out := p.must(t, "", "credence", "cluster", "join", cluster, "--workload-kubeconfig", seed.Kubeconfig, "--dry-run"); strings.Contains(out, membership.SecretName) {
		t.Errorf("a dry run prints:\n%s", out)
	}
	if out := p.must(t, "", "credence", "cluster", "join", cluster, "--workload-kubeconfig", seed.Kubeconfig); !strings.Contains(out, "secret/credence-identities created\n") {
		t.Errorf("join prints:\n%s", out)
	}
	p.must(t, "", "credence", "cluster", "check", cluster, "--workload-kubeconfig", seed.Kubeconfig)
	secret, err := stored.Get(t.Context(), membership.SecretName, metav1.GetOptions{})
	must(t, err)
	mount := func() {
		t.Helper()
		for name, content := range secret.Data {
			must(t, os.WriteFile(filepath.Join(mounted, name), content, 0o600))
		}
	}
	mount()
	for _, key := range []string{"agent.token", "webhook.token"} {
		secret.Data[key] = aged(t, secret.Data[key])
	}
	before, err := stored.Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
	seed.killPart(t, "agent")
	eventually(t, func() error {
		if secret, err = stored.Get(t.Context(), membership.SecretName, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, key := range []string{"agent.token", "webhook.token"} {
			if bytes.Equal(secret.Data[key], before.Data[key]) {
				return fmt.Errorf("%s has not been renewed", key)
			}
		}
		return nil
	})
	mount()
	for _, user := range []string{"agent", "webhook"} {
		if got := do(t, fromFile(t, filepath.Join(mounted, user+".kubeconfig")), "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`); !strings.Contains(string(got.Body), joined(cluster+"-"+user)) {
			t.Errorf("the renewed token of the %s: %d %s", user, got.Code, got.Body)
		}
	}

	t.Log("what the agent may write there")
	agent := seed.clientAs(t, agentUser, agentGroup).CoreV1().Secrets("credence-system")
	if _, err := agent.Get(t.Context(), "credence-keys", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the agent reads another Secret: %v", err)
	}
	for what, patch := range map[string]string{
		"a kubeconfig":  `{"stringData":{"webhook.kubeconfig":"{}"}}`,
		"another key":   `{"stringData":{"exec":"x"}}`,
		"less":          `{"data":{"agent.kubeconfig":null}}`,
		"a label":       `{"metadata":{"labels":{"a":"b"}}}`,
		"for all times": `{"immutable":true}`,
	} {
		_, err := agent.Patch(t.Context(), membership.SecretName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		refused(t, "the agent, "+what, err, "may write agent.token and webhook.token")
	}
	if err := agent.Delete(t.Context(), membership.SecretName, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the agent deletes it: %v", err)
	}
}

// aged is a token whose first half is over, without a valid signature.
func aged(t *testing.T, token []byte) []byte {
	t.Helper()
	_, c := claims(t, string(token))
	c["iat"], c["exp"] = time.Now().Add(-25*time.Hour).Unix(), time.Now().Add(23*time.Hour).Unix()
	payload := need(json.Marshal(c))(t)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString(payload) + ".c2ln")
}

// A cluster has no rights in namespaces that were taken off it, and none at all after it has left, whatever was left of its objects. It runs alone,
// as it deletes the namespace of all clusters.
func TestPlaneRightsOfClusters(t *testing.T) {
	p := alone(t)
	fruit, other := p.namespace(t), p.namespace(t)
	p.create(t, fruit, "banana", "generic", "a")
	defer p.forgetClusters(t)
	name := "l-" + fruit
	p.forgetCluster(t, name)
	run := func(code int, args ...string) (out, errOut string) {
		t.Helper()
		out, errOut, got := p.command(t, "", "credence", append([]string{"cluster"}, args...)...)
		if got != code {
			t.Fatalf("cluster %s: exit code %d, %s%s", strings.Join(args, " "), got, out, errOut)
		}
		return out, errOut
	}
	// bound are the namespaces that have a RoleBinding for an account of the cluster.
	bound := func() []string {
		t.Helper()
		all := need(p.client(t).RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{}))(t)
		found := sets.New[string]()
		for _, b := range all.Items {
			for _, s := range b.Subjects {
				if s.Namespace == identityv1alpha1.WorkloadClusters && strings.HasPrefix(s.Name, name+"-") {
					found.Insert(b.Namespace)
				}
			}
		}
		return sets.List(found)
	}
	const home = identityv1alpha1.WorkloadClusters
	wantBound := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(sets.List(sets.New(want...)), bound()); diff != "" {
			t.Errorf("namespaces with rights, %s (-want +got):\n%s", what, diff)
		}
	}
	narrow := func() {
		t.Helper()
		p.must(t, "", "kubectl", "patch", "workloadcluster", name, "--type=merge", `-p={"spec":{"identities":{"namespaces":["`+other+`"]}}}`)
	}
	tooMany := "rolebinding.rbac.authorization.k8s.io/credence:cluster:" + name + "-agent"

	t.Log("a namespace is taken off")
	folder := t.TempDir()
	run(0, "join", name, "--identities", fruit+","+other, "--out", folder)
	narrow()
	if out, errOut := run(1, "check", name); !strings.Contains(out, tooMany+" in namespace "+fruit+" is too many") || !strings.Contains(errOut, "cluster join "+name+" --out FOLDER") {
		t.Errorf("check with rights in a namespace that was taken off: %s%s", out, errOut)
	}
	if out, _ := run(0, "join", name, "--out", folder, "--dry-run"); !strings.Contains(out, tooMany+" deleted from namespace "+fruit+" (server dry run)") {
		t.Errorf("join would delete:\n%s", out)
	}
	wantBound("after a dry run", fruit, home, other)
	if out, _ := run(0, "join", name, "--out", folder); !strings.Contains(out, tooMany+" deleted from namespace "+fruit+"\n") {
		t.Errorf("join prints:\n%s", out)
	}
	wantBound("after it has joined again", home, other)
	run(0, "check", name, "--credentials", folder)
	run(0, "join", name, "--identities", fruit, "--out", folder)
	wantBound("after a namespace was added", fruit, home, other)
	run(0, "leave", name, "--identities", fruit)
	wantBound("after it has left a namespace", home, other)
	run(0, "check", name, "--credentials", folder)
	if got := p.must(t, "", "kubectl", "get", "workloadcluster", name, "-o", "jsonpath={.spec.identities.namespaces}"); got != `["`+other+`"]` {
		t.Errorf("namespaces of the cluster: %s", got)
	}

	t.Log("it leaves, with rights in a namespace that its object does not list, and others that an admin gave it")
	run(0, "join", name, "--identities", fruit, "--out", folder)
	narrow()
	agent := rbacv1.Subject{Kind: "ServiceAccount", Name: name + "-agent", Namespace: home}
	p.bind(t, fruit, "credence:agent:identities", agent)
	p.must(t, "", "kubectl", "create", "rolebinding", "mixed", "-n", fruit, "--clusterrole=view", "--user=jane", "--serviceaccount="+home+":"+name+"-agent")
	if _, errOut := run(0, "leave", name); !strings.Contains(errOut, "RoleBinding mixed of namespace "+fruit+" has other subjects, too") {
		t.Errorf("leave does not name the RoleBinding with other subjects: %s", errOut)
	}
	wantBound("after it has left", fruit)
	p.must(t, "", "kubectl", "delete", "rolebinding", "mixed", "-n", fruit)
	wantBound("after that")
	if out, _ := run(0, "leave", name); !strings.Contains(out, "nothing of cluster "+name+" was left") {
		t.Errorf("leave, again: %s", out)
	}

	t.Log("its WorkloadCluster is deleted")
	run(0, "join", name, "--identities", fruit, "--out", folder)
	before := fromFile(t, filepath.Join(folder, "agent.kubeconfig"))
	wantCode := func(want int) {
		t.Helper()
		eventually(t, func() error {
			if got := do(t, before, "POST", tokenPath(fruit, "banana"), "application/json", tokenRequest(`{}`)).Code; got != want {
				return fmt.Errorf("the credentials of before: %d, want %d", got, want)
			}
			return nil
		})
	}
	wantCode(http.StatusCreated)
	p.must(t, "", "kubectl", "delete", "workloadcluster", name)
	wantCode(http.StatusForbidden)
	planned, _ := run(0, "join", name, "--identities", fruit, "--out", t.TempDir(), "--dry-run")
	for _, done := range []string{"deleted", "created"} {
		if line := "serviceaccount/" + name + "-agent " + done + " (server dry run)\n"; !strings.Contains(planned, line) {
			t.Errorf("a dry run lacks %q:\n%s", line, planned)
		}
	}
	wantCode(http.StatusForbidden)
	if out, _ := run(0, "join", name, "--identities", other, "--out", t.TempDir()); !strings.HasPrefix(out, "serviceaccount/"+name+"-agent deleted\n") {
		t.Errorf("join prints:\n%s", out)
	}
	wantCode(http.StatusUnauthorized)
	wantBound("of the new cluster of the name", home, other)
	p.must(t, "", "kubectl", "delete", "workloadcluster", name)
	run(0, "leave", name)
	wantBound("after it has left without its object")
	for _, kind := range []string{"serviceaccounts", "secrets", "roles"} {
		if got := p.must(t, "", "kubectl", "get", kind, "-n", home, "-o", "name"); strings.Contains(got, name) {
			t.Errorf("left of the cluster: %s", got)
		}
	}
}
