package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	useLabel  = "identity.credence.dev/account-use"
	jsonBody  = "application/json"
	strategic = "application/strategic-merge-patch+json"
)

// accountUse is a namespace in which users need the right to use service accounts: jane has the role edit, joe besides may use the
// account cart.
type accountUse struct {
	plane
	namespace, jane, joe string
}

func newAccountUse(t *testing.T, p plane, mode string) accountUse {
	t.Helper()
	a := accountUse{plane: p, namespace: p.namespace(t)}
	a.jane, a.joe = a.namespace+"-jane", a.namespace+"-joe"
	client := p.client(t)
	for _, name := range []string{"cart", "till"} {
		need(client.CoreV1().ServiceAccounts(a.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/status", "replicationcontrollers/status", "podtemplates"}, Verbs: []string{"*"}},
		{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions", "deployments/status", "statefulsets/status", "daemonsets/status", "replicasets/status"}, Verbs: []string{"*"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs/status", "cronjobs/status"}, Verbs: []string{"*"}},
	}
	for _, name := range []string{a.jane, a.joe} {
		p.bind(t, a.namespace, "edit", user(name))
		p.role(t, a.namespace, name, rules, name)
	}
	p.grant(t, a.namespace, user(a.joe), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"cart"}, Verbs: []string{"use"}})
	a.label(t, mode)
	eventually(t, func() error {
		if code, _ := a.send(t, a.joe, "POST", "pods", jsonBody, podWith("cart")); code != http.StatusCreated {
			return fmt.Errorf("joe cannot use the account yet: %d", code)
		}
		if code, answer := a.send(t, a.jane, "POST", "pods", jsonBody, podWith("cart")); mode == "enforce" && code != http.StatusForbidden {
			return fmt.Errorf("the policies do not know the namespace yet: %d %s", code, answer)
		}
		return nil
	})
	return a
}

func (a accountUse) label(t *testing.T, mode string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, useLabel, mode)
	need(a.client(t).CoreV1().Namespaces().Patch(t.Context(), a.namespace, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
}

// send sends a request about a resource of the namespace, of which nothing is stored.
func (a accountUse) send(t *testing.T, user, method, resource, contentType, body string) (int, string) {
	t.Helper()
	return a.sendAs(t, a.as(t, user), method, resource, contentType, body)
}

func (a accountUse) sendAs(t *testing.T, config *rest.Config, method, resource, contentType, body string) (int, string) {
	t.Helper()
	resource, query, _ := strings.Cut(resource, "?")
	if query != "" {
		query = "&" + query
	}
	got := do(t, config, method, pathOf(a.namespace, resource)+"?dryRun=All"+query, contentType, body)
	var status metav1.Status
	_ = json.Unmarshal(got.Body, &status)
	return got.Code, status.Message + strings.Join(got.Header.Values("Warning"), " ")
}

// groups are the API groups of the resources that these tests use.
var groups = map[string]string{
	"deployments": "apps/v1", "statefulsets": "apps/v1", "daemonsets": "apps/v1", "replicasets": "apps/v1", "controllerrevisions": "apps/v1",
	"jobs": "batch/v1", "cronjobs": "batch/v1",
}

func pathOf(namespace, resource string) string {
	kind, _, _ := strings.Cut(resource, "/")
	root := "/api/v1"
	if group := groups[kind]; group != "" {
		root = "/apis/" + group
	}
	return root + "/namespaces/" + namespace + "/" + resource
}

// create has an admin of the cluster make an object, for good.
func (a accountUse) create(t *testing.T, resource, body string) {
	t.Helper()
	must(t, do(t, a.config(t), "POST", pathOf(a.namespace, resource), jsonBody, body).is(http.StatusCreated), resource)
}

func specWith(account string) string {
	return fmt.Sprintf(`{"serviceAccountName":%q,"restartPolicy":"Always","containers":[{"name":"c","image":"one"}]}`, account)
}

func podWith(account string) string {
	return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":%s}`, specWith(account))
}

// workload is a resource that makes pods, and how its objects hold the spec of them.
type workload struct{ resource, kind, before, after string }

const templateBefore = `{"metadata":{"labels":{"app":"x"}},"spec":`

var workloads = []workload{
	{"pods", "Pod", `{"metadata":{"name":"x","labels":{"app":"x"}},"spec":`, `}`},
	{"deployments", "Deployment", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + templateBefore, `}}}`},
	{"statefulsets", "StatefulSet", `{"metadata":{"name":"x"},"spec":{"serviceName":"x","selector":{"matchLabels":{"app":"x"}},"template":` + templateBefore, `}}}`},
	{"daemonsets", "DaemonSet", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + templateBefore, `}}}`},
	{"replicasets", "ReplicaSet", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + templateBefore, `}}}`},
	{"replicationcontrollers", "ReplicationController", `{"metadata":{"name":"x"},"spec":{"selector":{"app":"x"},"template":` + templateBefore, `}}}`},
	{"podtemplates", "PodTemplate", `{"metadata":{"name":"x"},"template":` + templateBefore, `}}`},
	{"jobs", "Job", `{"metadata":{"name":"x"},"spec":{"suspend":true,"template":` + templateBefore, `}}}`},
	{"cronjobs", "CronJob", `{"metadata":{"name":"x"},"spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":` + templateBefore, `}}}}}`},
}

func (w workload) with(account string) string {
	spec := specWith(account)
	if w.resource == "jobs" || w.resource == "cronjobs" {
		spec = strings.Replace(spec, "Always", "Never", 1)
	}
	return w.before + spec + w.after
}

// applied is what a user applies.
func (w workload) applied(account string) string {
	version := groups[w.resource]
	if version == "" {
		version = "v1"
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, version, w.kind) + w.with(account)[1:]
}

// inSpec is a merge patch of the spec of the pods.
func (w workload) inSpec(patch string) string {
	switch w.resource {
	case "pods":
		return `{"spec":` + patch + `}`
	case "podtemplates":
		return `{"template":{"spec":` + patch + `}}`
	case "cronjobs":
		return `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + patch + `}}}}}`
	}
	return `{"spec":{"template":{"spec":` + patch + `}}}`
}

// want is what a user is answered: a refusal that names the right and the command, or none.
func (a accountUse) want(t *testing.T, what, who string, allowed bool, code int, answer string) {
	t.Helper()
	switch {
	case allowed && code >= 300:
		t.Errorf("%s: %s is refused: %d %s", what, who, code, answer)
	case !allowed && (code != http.StatusForbidden || !strings.Contains(answer, "credence access grant -n "+a.namespace+" -- "+who+" ")):
		t.Errorf("%s: %s is answered %d %q, want a refusal with the command that gives the right", what, who, code, answer)
	}
}

// Each kind that makes pods: creating and changing a template is the user's, who needs the right. Status, labels and scaling need none, except that
// a ReplicaSet or ReplicationController, which may have an old template, grows.
func TestAccountUseOfEachKind(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	for _, w := range workloads {
		t.Run(w.resource, func(t *testing.T) {
			object := w.resource + "/x"
			apply := object + "?fieldManager=e2e&force=true"
			for _, who := range []string{a.jane, a.joe} {
				code, answer := a.send(t, who, "POST", w.resource, jsonBody, w.with("cart"))
				a.want(t, "create", who, who == a.joe, code, answer)
				code, answer = a.send(t, who, "POST", w.resource, jsonBody, w.with("default"))
				a.want(t, "create without an account", who, true, code, answer)
				code, answer = a.send(t, who, "PATCH", apply, applyPatch, w.applied("cart"))
				a.want(t, "apply", who, who == a.joe, code, answer)
				code, answer = a.send(t, who, "PATCH", apply, applyPatch, w.applied("default"))
				a.want(t, "apply without an account", who, true, code, answer)
			}
			a.create(t, w.resource, w.with("cart"))
			image := `{"containers":[{"name":"c","image":"two"}]}`
			for _, who := range []string{a.jane, a.joe} {
				if w.resource != "jobs" { // of which no template can be changed
					code, answer := a.send(t, who, "PATCH", object, strategic, w.inSpec(image))
					a.want(t, "another image", who, who == a.joe, code, answer)
					code, answer = a.send(t, who, "PATCH", apply, applyPatch, strings.Replace(w.applied("cart"), `"image":"one"`, `"image":"two"`, 1))
					a.want(t, "apply another image", who, who == a.joe, code, answer)
				}
				if w.resource != "podtemplates" { // which have no status
					code, answer := a.send(t, who, "PATCH", object+"/status", strategic, w.inSpec(image))
					a.want(t, "status", who, true, code, answer)
				}
				if !slices.Contains([]string{"pods", "jobs"}, w.resource) {
					code, answer := a.send(t, who, "PATCH", object, strategic, w.inSpec(`{"serviceAccountName":"till","serviceAccount":"till"}`))
					a.want(t, "another account", who, false, code, answer)
				}
				code, answer := a.send(t, who, "PATCH", object, mergePatch, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}}}`)
				a.want(t, "a label", who, true, code, answer)
			}
			scaled := slices.Contains([]string{"deployments", "statefulsets"}, w.resource)
			history := slices.Contains([]string{"replicasets", "replicationcontrollers"}, w.resource)
			for _, who := range []string{a.jane, a.joe} {
				for _, patch := range []string{object, object + "/scale"} {
					if !scaled && !history {
						continue
					}
					code, answer := a.send(t, who, "PATCH", patch, mergePatch, `{"spec":{"replicas":3}}`)
					a.want(t, "grow "+patch, who, scaled || who == a.joe && patch == object, code, answer)
					code, answer = a.send(t, who, "PATCH", patch, mergePatch, `{"spec":{"replicas":0}}`)
					a.want(t, "shrink "+patch, who, true, code, answer)
				}
			}
		})
	}
}

// accountsWithoutTheLabel has a plane whose namespaces lack the label evaluate none of the policies.
func accountsWithoutTheLabel(t *testing.T, p plane) {
	a := accountUse{plane: p, namespace: p.namespace(t)}
	a.create(t, "serviceaccounts", `{"metadata":{"name":"cart"}}`)
	for _, w := range workloads {
		a.create(t, w.resource, w.with("cart"))
		if code, answer := a.sendAs(t, p.config(t), "PATCH", w.resource+"/x", mergePatch, `{"metadata":{"labels":{"more":"x"}}}`); code != http.StatusOK {
			t.Errorf("%s: %d %s", w.resource, code, answer)
		}
	}
	a.create(t, "serviceaccounts/cart/token", `{"spec":{}}`)
	a.create(t, "secrets", `{"metadata":{"name":"any-name","annotations":{"kubernetes.io/service-account.name":"cart"}},"type":"kubernetes.io/service-account-token"}`)
	a.create(t, "controllerrevisions", `{"metadata":{"name":"r"},"revision":1,"data":{"spec":{"template":{"spec":{"serviceAccountName":"cart"}}}}}`)
	if got := p.evaluations(t); got != "" {
		t.Errorf("policies were evaluated:\n%s", got)
	}
}

// evaluations are kube-apiserver's metrics of the policies that namespaces have by the label.
func (p plane) evaluations(t *testing.T) string {
	t.Helper()
	got := do(t, p.config(t), "GET", "/metrics", "", "")
	if got.Code != http.StatusOK {
		t.Fatalf("metrics of kube-apiserver: %d", got.Code)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(got.Body)) {
		if strings.Contains(line, `"credence-account-use-`) && !strings.Contains(line, `"credence-account-use-label`) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// The ways around: each is tried as jane, who may edit all of the namespace and use its account default alone.
func TestWaysAroundAccountUse(t *testing.T) {
	inTurn(t)
	newAccountUse(t, shared, "enforce").waysAround(t)
}

func (a accountUse) waysAround(t *testing.T) {
	t.Helper()
	a.create(t, "pods", podWith("cart"))
	a.create(t, "deployments", workloads[1].with("default"))
	owned := func(name, uid string) string {
		return `"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"` + name + `","uid":"` + uid + `","controller":true}]`
	}
	web := need(a.client(t).AppsV1().Deployments(a.namespace).Get(t.Context(), "x", metav1.GetOptions{}))(t)
	old := strings.Replace(workloads[4].with("cart"), `"name":"x"`, `"name":"x-old","labels":{"app":"x"},`+owned("x", string(web.UID)), 1)
	a.create(t, "replicasets", strings.Replace(old, `"selector"`, `"replicas":0,"selector"`, 1))
	const rollback = `{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"1"}}}`
	a.create(t, "secrets", `{"metadata":{"name":"sa-token.cart","annotations":{"kubernetes.io/service-account.name":"cart"}},"type":"kubernetes.io/service-account-token"}`)
	a.create(t, "secrets", `{"metadata":{"name":"sa-token.default","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`)
	container := func(more string) string {
		return `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"one"` + more + `}]}}`
	}
	revision := func(data string) string { return `{"metadata":{"name":"r"},"revision":1,"data":` + data + `}` }
	foreign := "holds the token of another service account"
	noName := "credence access grant -n " + a.namespace + " -- " + a.jane + " '*'"
	command := "credence access grant -n " + a.namespace + " -- " + a.jane + " cart"
	for name, try := range map[string]struct{ method, resource, contentType, body, words string }{
		"a pod with the deprecated field":      {"POST", "pods", jsonBody, `{"metadata":{"name":"q"},"spec":{"serviceAccount":"cart","containers":[{"name":"c","image":"i"}]}}`, command},
		"a pod without a name":                 {"POST", "pods", jsonBody, strings.Replace(podWith("cart"), `"name":"p"`, `"generateName":"p-"`, 1), command},
		"a pod by server-side apply":           {"PATCH", "pods/q?fieldManager=x", applyPatch, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"},"spec":` + specWith("cart") + `}`, command},
		"a pod with a controller as owner":     {"POST", "pods", jsonBody, strings.Replace(podWith("cart"), `"name":"p"`, `"name":"q","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"x","uid":"x","controller":true}]`, 1), command},
		"an ephemeral container":               {"PATCH", "pods/p/ephemeralcontainers", strategic, `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`, command},
		"a deployment by server-side apply":    {"PATCH", "deployments/q?fieldManager=x", applyPatch, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"q"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":` + specWith("cart") + `}}}`, command},
		"a template with the deprecated field": {"POST", "podtemplates", jsonBody, `{"metadata":{"name":"q"},"template":{"spec":{"serviceAccount":"cart","containers":[{"name":"c","image":"i"}]}}}`, command},
		"the account's token":                  {"POST", "serviceaccounts/cart/token", jsonBody, `{"spec":{}}`, command},
		"the account's token, for a pod":       {"POST", "serviceaccounts/cart/token", jsonBody, `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}}`, command},
		"a Secret with a token":                {"POST", "secrets", jsonBody, `{"metadata":{"name":"sa-token-mine.cart","annotations":{"kubernetes.io/service-account.name":"cart"}},"type":"kubernetes.io/service-account-token"}`, command},
		"a Secret under another name":          {"POST", "secrets", jsonBody, `{"metadata":{"name":"mine","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`, "must be named sa-token.default"},
		"a Secret under the name of another":   {"POST", "secrets", jsonBody, `{"metadata":{"name":"sa-token.cart","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`, "must be named sa-token.default"},
		"a Secret's account changed":           {"PATCH", "secrets/sa-token.default", mergePatch, `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"cart"}}}`, command},
		"a Secret as a volume":                 {"POST", "pods", jsonBody, `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"sa-token.cart"}}]}}`, foreign},
		"a Secret in a projected volume":       {"POST", "pods", jsonBody, `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"c"}},{"secret":{"name":"sa-token-2.cart"}}]}}]}}`, foreign},
		"a Secret in a variable":               {"POST", "pods", jsonBody, container(`,"env":[{"name":"a","value":"b"},{"name":"T","valueFrom":{"secretKeyRef":{"name":"sa-token.cart","key":"token"}}}]`), foreign},
		"a Secret as variables":                {"POST", "pods", jsonBody, container(`,"envFrom":[{"secretRef":{"name":"sa-token.cart"}}]`), foreign},
		"a Secret in an init container":        {"POST", "pods", jsonBody, `{"metadata":{"name":"q"},"spec":{"initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"sa-token.cart"}}]}],"containers":[{"name":"c","image":"i"}]}}`, foreign},
		"a Secret in a template":               {"POST", "jobs", jsonBody, `{"metadata":{"name":"q"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"sa-token.cart"}}]}}}}`, foreign},
		"a revision":                           {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"replace","spec":{"serviceAccountName":"cart"}}}}`), command},
		"a revision with the deprecated field": {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"replace","spec":{"serviceAccount":"cart"}}}}`), command},
		"a revision that is merged":            {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}`), noName},
		"a revision of another case":           {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"replace","spec":{"serviceAccountName":"default","serviceaccountName":"cart"}}}}`), noName},
		"a revision of another case alone":     {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"replace","spec":{"ServiceAccountName":"cart"}}}}`), noName},
		"a revision with another Spec":         {"POST", "controllerrevisions", jsonBody, revision(`{"Spec":{"template":{"$patch":"replace","spec":{"serviceAccountName":"cart"}}}}`), noName},
		"a revision with a long s":             {"POST", "controllerrevisions", jsonBody, revision(`{"\u017fpec":{"template":{"$patch":"replace","spec":{"serviceAccountName":"cart"}}}}`), noName},
		"a revision with another Template":     {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"Template":{"$patch":"replace","spec":{"serviceAccountName":"cart"}}}}`), noName},
		"a revision with another template":     {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"replace","spec":{}},"Template":{"spec":{"serviceAccountName":"cart"}}}}`), noName},
		"a revision that takes the spec away":  {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"$patch":"delete"}}}`), noName},
		"a Secret of an account in a shell":    {"POST", "secrets", jsonBody, `{"metadata":{"name":"sa-token.x","annotations":{"kubernetes.io/service-account.name":"x; touch /tmp/owned"}},"type":"kubernetes.io/service-account-token"}`, a.jane + " 'x; touch /tmp/owned'"},
		"a revision of metadata alone":         {"POST", "controllerrevisions", jsonBody, revision(`{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`), noName},
		"a rollback by annotation":             {"PATCH", "deployments/x", mergePatch, rollback, noName},
		"a deployment that rolls back":         {"POST", "deployments", jsonBody, strings.Replace(workloads[1].with("default"), `"name":"x"`, `"name":"q",`+rollback[len(`{"metadata":{`):len(rollback)-2], 1), noName},
		"an old template that grows":           {"PATCH", "replicasets/x-old", mergePatch, `{"spec":{"replicas":1}}`, command},
		"an old template by its scale":         {"PATCH", "replicasets/x-old/scale", mergePatch, `{"spec":{"replicas":1}}`, noName},
		"an old template without its owner":    {"PATCH", "replicasets/x-old", mergePatch, `{"metadata":{"ownerReferences":null,"labels":{"app":"other"}}}`, command},
		"an old template of another owner":     {"PATCH", "replicasets/x-old", mergePatch, `{"metadata":{` + owned("y", "y") + `}}`, command},
	} {
		code, answer := a.send(t, a.jane, try.method, try.resource, try.contentType, try.body)
		if code != http.StatusForbidden && code != http.StatusUnprocessableEntity || !strings.Contains(answer, try.words) {
			t.Errorf("%s: %d %q, want a refusal with %q", name, code, answer, try.words)
		}
	}
	for name, try := range map[string]struct {
		user, method, resource, body string
		groups                       []string
	}{
		"her own pods":                     {user: a.jane, resource: "pods", body: `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"sa-token.default"}}]}}`},
		"her own token":                    {user: a.jane, resource: "serviceaccounts/default/token", body: `{"spec":{}}`},
		"a revision of the account":        {user: a.jane, resource: "controllerrevisions", body: revision(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[]}}}}`)},
		"a revision that has no template":  {user: a.jane, resource: "controllerrevisions", body: revision(`{"state":1}`)},
		"the garbage collector":            {user: "system:serviceaccount:kube-system:generic-garbage-collector", method: "PATCH", resource: "replicasets/x-old", body: `{"metadata":{"ownerReferences":null}}`, groups: []string{"system:serviceaccounts"}},
		"a roll-out":                       {user: "system:serviceaccount:kube-system:deployment-controller", method: "PATCH", resource: "replicasets/x-old", body: `{"spec":{"replicas":3}}`, groups: []string{"system:serviceaccounts"}},
		"a controller of Kubernetes":       {user: "system:serviceaccount:kube-system:replicaset-controller", resource: "pods", body: podWith("cart"), groups: []string{"system:serviceaccounts"}},
		"the revisions of its controllers": {user: "system:serviceaccount:kube-system:statefulset-controller", resource: "controllerrevisions", body: revision(`{"spec":{"template":{"$patch":"replace","spec":{"serviceAccountName":"cart"}}}}`), groups: []string{"system:serviceaccounts"}},
	} {
		contentType := mergePatch
		if try.method == "" {
			try.method, contentType = "POST", jsonBody
		}
		if code, answer := a.sendAs(t, a.as(t, try.user, try.groups...), try.method, try.resource, contentType, strings.Replace(try.body, `"name":"p"`, `"name":"of-controller"`, 1)); code >= 300 {
			t.Errorf("%s: refused: %d %s", name, code, answer)
		}
	}
	// An account may run pods as itself, and a name like a kubelet's makes no user one.
	account := "system:serviceaccount:" + a.namespace + ":cart"
	node := "system:node:" + a.jane
	for _, name := range []string{account, node} {
		a.bind(t, a.namespace, "edit", user(name))
	}
	eventually(t, func() error {
		if code, answer := a.send(t, account, "POST", "pods", jsonBody, strings.Replace(podWith("cart"), `"name":"p"`, `"name":"own"`, 1)); code >= 300 {
			return fmt.Errorf("the account itself: %d %s", code, answer)
		}
		return nil
	})
	eventually(t, func() error {
		code, answer := a.send(t, node, "POST", "serviceaccounts/cart/token", jsonBody, `{"spec":{}}`)
		if code != http.StatusForbidden || !strings.Contains(answer, "may not use service account cart") {
			return fmt.Errorf("a user with the name of a node: %d %s", code, answer)
		}
		return nil
	})
}

// A user's name is the choice of who names users: the command in a refusal is one argument for it, whatever it holds.
func TestCommandOfARefusal(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	hostile := `x'; touch /tmp/owned; '`
	shared.bind(t, a.namespace, "edit", user(hostile))
	eventually(t, func() error {
		code, answer := a.send(t, hostile, "POST", "deployments", jsonBody, workloads[1].with("cart"))
		if want := `-- 'x'\''; touch /tmp/owned; '\''' cart`; code != http.StatusForbidden || !strings.Contains(answer, want) {
			return fmt.Errorf("%d %s, want %s", code, answer, want)
		}
		return nil
	})
	labeled := func(namespace string) string {
		return fmt.Sprintf(`{"metadata":{"name":"s","labels":{%q:%q},"annotations":{%q:"banana",%q:%q}}}`, v1alpha1.LabelPurpose, v1alpha1.PurposeTokenRequestor, v1alpha1.AnnotationName, v1alpha1.AnnotationNamespace, namespace)
	}
	code, answer := a.send(t, hostile, "POST", "secrets", jsonBody, labeled(a.namespace))
	if want := `--user='x'\''; touch /tmp/owned; '\'''`; code != http.StatusForbidden || !strings.Contains(answer, want) {
		t.Errorf("a Secret: %d %s, want %s", code, answer, want)
	}
	code, answer = a.send(t, hostile, "POST", "secrets", jsonBody, labeled("t1 $(id)"))
	if code < http.StatusBadRequest || strings.Contains(answer, "kubectl create") {
		t.Errorf("a Secret of a namespace that is a command: %d %s", code, answer)
	}
}

// audit admits, and notes in the audit log what was missing; warn shows it, too; a namespace without the label has none of it.
func TestAccountUseModes(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "audit")
	send := func() response {
		return do(t, shared.as(t, a.jane), "POST", pathOf(a.namespace, "pods")+"?dryRun=All", jsonBody, podWith("cart"))
	}
	noted := func(got response) string {
		var value string
		for _, event := range events(t, filepath.Join(shared.Dir, "devcluster", "audit.log"), got.Header.Get("Audit-Id")) {
			if strings.Contains(event.Annotations["validation.policy.admission.k8s.io/validation_failure"], "credence-account-use-pods") {
				value = event.Annotations["credence-account-use-pods/account"]
			}
		}
		return value
	}
	modes := []struct {
		mode          string
		code          int
		warned, noted bool
	}{{"audit", 201, false, true}, {"warn", 201, true, true}, {"enforce", 403, false, true}}
	for _, m := range modes {
		a.label(t, m.mode)
		eventually(t, func() error {
			got := send()
			warning := strings.Contains(got.Header.Get("Warning"), "may not use service account cart")
			if got.Code != m.code || warning != m.warned {
				return fmt.Errorf("%s: %d, warning %q", m.mode, got.Code, got.Header.Get("Warning"))
			}
			if value := noted(got); (value == a.namespace+"/cart") != m.noted {
				return fmt.Errorf("%s: the audit log notes %q", m.mode, value)
			}
			return nil
		})
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, useLabel)
	need(shared.client(t).CoreV1().Namespaces().Patch(t.Context(), a.namespace, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	eventually(t, func() error {
		got := send()
		if got.Code != http.StatusCreated || got.Header.Get("Warning") != "" || noted(got) != "" {
			return fmt.Errorf("without the label: %d %q %q", got.Code, got.Header.Get("Warning"), noted(got))
		}
		return nil
	})
}

// The label stays, unless a user may do without it: not by any of the ways to write a namespace.
func TestAccountUseLabel(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	owner, manager := a.namespace+"-owner", a.namespace+"-manager"
	namespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"get", "update", "patch"}}
	shared.grant(t, a.namespace, user(owner), namespaces)
	shared.grant(t, a.namespace, user(manager), namespaces)
	shared.grant(t, a.namespace, user(manager), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"manage-account-use"}})
	patch := func(who, sub, value string) (int, string) {
		got := do(t, shared.as(t, who), "PATCH", "/api/v1/namespaces/"+a.namespace+sub+"?dryRun=All", mergePatch, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, useLabel, value))
		return got.Code, string(got.Body)
	}
	eventually(t, func() error {
		if code, answer := patch(manager, "", "null"); code != http.StatusOK {
			return fmt.Errorf("with the right: %d %s", code, answer)
		}
		return nil
	})
	eventually(t, func() error {
		code, answer := patch(owner, "", "null")
		if !strings.Contains(answer, "manage-account-use") {
			return fmt.Errorf("%d %s", code, answer)
		}
		return nil
	})
	for _, sub := range []string{"", "/status"} {
		for _, value := range []string{"null", `"audit"`, `"warn"`} {
			if code, answer := patch(owner, sub, value); code != http.StatusForbidden || !strings.Contains(answer, "manage-account-use") {
				t.Errorf("label %s by namespaces%s: %d %s", value, sub, code, answer)
			}
		}
	}
	namespace := need(shared.client(t).CoreV1().Namespaces().Get(t.Context(), a.namespace, metav1.GetOptions{}))(t)
	delete(namespace.Labels, useLabel)
	if _, err := shared.clientAs(t, owner).CoreV1().Namespaces().Finalize(t.Context(), namespace, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "manage-account-use") {
		t.Errorf("the label taken off by namespaces/finalize: %v", err)
	}
	if code, answer := patch(manager, "", `"Enforce"`); code != http.StatusUnprocessableEntity || !strings.Contains(answer, "audit, warn and enforce") {
		t.Errorf("a value that has no effect: %d %s", code, answer)
	}
	if code, answer := patch(owner, "", `"enforce"`); code != http.StatusOK {
		t.Errorf("no change: %d %s", code, answer)
	}
	trusted := a.namespace + "-trusted"
	shared.grant(t, a.namespace, user(trusted), namespaces)
	shared.grant(t, a.namespace, user(trusted), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"manage-profiles", "manage-quotas"}})
	for _, label := range []string{"profiles", "quotas"} {
		shared.must(t, "", "kubectl", "label", "namespace", a.namespace, "identity.credence.dev/"+label+"=enabled")
		for _, who := range []string{owner, manager} {
			expect(t, do(t, shared.as(t, who), "PATCH", "/api/v1/namespaces/"+a.namespace, mergePatch, `{"metadata":{"labels":{"identity.credence.dev/`+label+`":null}}}`).is(http.StatusForbidden, "manage-"+label), fmt.Sprintf("the label of %s taken off by %s", label, who))
		}
		eventually(t, func() error {
			got := do(t, shared.as(t, trusted), "PATCH", "/api/v1/namespaces/"+a.namespace, mergePatch, `{"metadata":{"labels":{"identity.credence.dev/`+label+`":null}}}`)
			return wantAnswer(got, http.StatusOK, "")
		})
	}
}

// credence:developer is edit, without rights that are as good as an account of the namespace.
func TestDeveloperIsEditWithoutAccounts(t *testing.T) {
	inTurn(t)
	client := shared.client(t).RbacV1()
	rules := func(name string) map[string]bool {
		role := need(client.ClusterRoles().Get(t.Context(), name, metav1.GetOptions{}))(t)
		all := map[string]bool{}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[strings.TrimPrefix(group+"/"+resource, "/")+" "+verb+strings.Join(rule.ResourceNames, ",")] = true
					}
				}
			}
		}
		return all
	}
	without := []string{
		"pods/attach create", "pods/attach delete", "pods/attach deletecollection", "pods/attach get", "pods/attach list", "pods/attach patch", "pods/attach update", "pods/attach watch",
		"pods/exec create", "pods/exec delete", "pods/exec deletecollection", "pods/exec get", "pods/exec list", "pods/exec patch", "pods/exec update", "pods/exec watch",
		"secrets delete", "secrets deletecollection", "secrets get", "secrets list", "secrets patch", "secrets update", "secrets watch", "serviceaccounts impersonate", "serviceaccounts/token create",
	}
	eventually(t, func() error { // the aggregation is a controller's
		edit, developer := rules("edit"), rules("credence:developer")
		var missing, more []string
		for right := range edit {
			// Kubernetes serves nothing of this group any more.
			if !developer[right] && !strings.HasPrefix(right, "extensions/") {
				missing = append(missing, right)
			}
		}
		for right := range developer {
			// Before 1.36, edit has no rights on what Kubernetes had not released yet.
			if !edit[right] && !strings.HasPrefix(right, "resource.k8s.io/") && !strings.HasPrefix(right, "events.k8s.io/") {
				more = append(more, right)
			}
		}
		slices.Sort(missing)
		if !slices.Equal(missing, without) || len(more) > 0 {
			return fmt.Errorf("edit has these rights, too: %q, want %q; and lacks these: %q", missing, without, more)
		}
		return nil
	})
}
