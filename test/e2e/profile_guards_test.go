package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const profilesProcess = "system:serviceaccount:credence-system:credence-profiles"

// profileWriters is a namespace with profiles. All of its users but viewer may write each of its profiles as far as RBAC is concerned: writer may
// use the accounts cart, free and new besides, and namer all but the identity, the template and the credential spec named no.
type profileWriters struct {
	plane
	namespace, writer, namer, stranger, viewer string
}

func newProfileWriters(t *testing.T, p plane) profileWriters {
	t.Helper()
	w := profileWriters{plane: p, namespace: p.namespace(t)}
	w.writer, w.namer, w.stranger, w.viewer = w.namespace+"-writer", w.namespace+"-namer", w.namespace+"-stranger", w.namespace+"-viewer"
	profiles := rbacv1.PolicyRule{APIGroups: []string{"accounts.credence.dev"}, Resources: []string{"serviceaccountprofiles", "serviceaccountprofiles/status"}, Verbs: []string{"*"}}
	profiles.Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	use := func(group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"use"}}
	}
	for _, who := range []string{w.writer, w.namer, w.stranger, "system:serviceaccount:" + w.namespace + ":cart"} {
		p.grant(t, w.namespace, user(who), profiles)
	}
	p.bind(t, w.namespace, "view", user(w.viewer))
	for _, who := range []string{w.writer, w.namer} {
		p.grant(t, w.namespace, user(who), use("", "serviceaccounts", "cart", "free", "new"))
	}
	var identities []string
	for i := range 16 {
		identities = append(identities, fmt.Sprintf("i%d", i))
	}
	p.grant(t, w.namespace, user(w.namer), use("authentication.gardener.cloud", "workloadidentities", identities...))
	p.grant(t, w.namespace, user(w.namer), use("accounts.credence.dev", "securitycontexttemplates", "yes"))
	p.grant(t, w.namespace, user(w.namer), use("windows.k8s.io", "gmsacredentialspecs", "yes"))
	p.bindCluster(t, w.namer, "credence:serviceaccountprofiles:namer")
	root := w.send
	for name, spec := range map[string]string{"cart": `{"workloadIdentities":["kept"],"username":"cart@example.com","securityContext":{"templateRef":{"name":"kept"}}}`, "till": `{}`, "free": `{}`} {
		if code, answer := root(t, "", http.MethodPost, "?", jsonBody, profileOf(name, spec)); code != http.StatusCreated {
			t.Fatalf("profile %s: %d %s", name, code, answer)
		}
	}
	eventually(t, func() error { // both kinds of rights, and the policy
		if code, answer := w.send(t, w.namer, http.MethodPost, "", jsonBody, profileOf("new", `{"username":"a@b.c","workloadIdentities":["i15"],"securityContext":{"templateRef":{"name":"yes"}}}`)); code != http.StatusCreated {
			return fmt.Errorf("all rights: %d %s", code, answer)
		}
		if code, answer := w.send(t, w.writer, http.MethodPost, "", jsonBody, profileOf("new", `{}`)); code != http.StatusCreated {
			return fmt.Errorf("the right to use an account: %d %s", code, answer)
		}
		return nil
	})
	return w
}

// send sends a request about profiles of the namespace; nothing of it is stored, unless the path has a query. The empty user is the admin of the
// cluster.
func (w profileWriters) send(t *testing.T, who, method, path, contentType, body string) (int, string) {
	t.Helper()
	config := w.config(t)
	if who != "" {
		config = w.as(t, who)
	}
	if !strings.Contains(path, "?") {
		path += "?dryRun=All"
	} else if strings.Contains(path, "fieldManager") {
		path += "&dryRun=All"
	}
	got := do(t, config, method, "/apis/accounts.credence.dev/v1alpha1/namespaces/"+w.namespace+"/serviceaccountprofiles"+path, contentType, body)
	return got.Code, string(got.Body)
}

func profileOf(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":%q},"spec":%s}`, name, spec)
}

// profileAttack is a request about a profile that must be refused, and the words of the refusal.
type profileAttack struct{ who, method, path, contentType, body, words string }

func (w profileWriters) attacks() map[string]profileAttack {
	grant := func(who, account string) string {
		return "credence access grant -n " + w.namespace + " -- " + who + " " + account
	}
	identity := "--clusterrole=credence:workloadidentities:user --user=" + w.writer
	namer := "--clusterrole=credence:serviceaccountprofiles:namer --user=" + w.writer
	template := "--clusterrole=credence:securitycontexttemplates:user --user=" + w.writer
	account := "system:serviceaccount:" + w.namespace + ":cart"
	const notDefault = "the name that another service account has by default"
	attacks := map[string]profileAttack{
		"an account that the writer may not use":   {w.writer, "POST", "", jsonBody, profileOf("other", `{}`), grant(w.writer, "other")},
		"an account by server-side apply":          {w.writer, "PATCH", "/other?fieldManager=x", applyPatch, profileOf("other", `{}`), grant(w.writer, "other")},
		"a generated name":                         {w.writer, "POST", "", jsonBody, `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"generateName":"new"},"spec":{}}`, "may not use service account new"},
		"a change of another account's":            {w.writer, "PATCH", "/till", mergePatch, `{"spec":{"automountToken":true}}`, grant(w.writer, "till")},
		"a deletion of another account's":          {w.writer, "DELETE", "/till", "", "", grant(w.writer, "till")},
		"a deletion of all":                        {w.writer, "DELETE", "", "", "", grant(w.writer, "till")},
		"an owner that is gone":                    {w.writer, "PATCH", "/till", mergePatch, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`, grant(w.writer, "till")},
		"a stranger":                               {w.stranger, "POST", "", jsonBody, profileOf("new", `{}`), grant(w.stranger, "new")},
		"a stranger changes nothing but the mode":  {w.stranger, "PATCH", "/cart", mergePatch, `{"spec":{"securityContext":{"mode":"Enforce"}}}`, grant(w.stranger, "cart")},
		"the account itself":                       {account, "PATCH", "/cart", mergePatch, `{"spec":{"secrets":null,"automountToken":true}}`, grant(account, "cart")},
		"the account itself, as a group of users":  {account, "DELETE", "/cart", "", "", grant(account, "cart")},
		"an identity":                              {w.writer, "POST", "", jsonBody, profileOf("new", `{"workloadIdentities":["no"]}`), identity},
		"an identity added":                        {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"workloadIdentities":["kept","no"]}}`, "may not use WorkloadIdentity no"},
		"an identity added by JSON patch":          {w.writer, "PATCH", "/cart", "application/json-patch+json", `[{"op":"add","path":"/spec/workloadIdentities/-","value":"no"}]`, "may not use WorkloadIdentity no"},
		"an identity added by server-side apply":   {w.writer, "PATCH", "/free?fieldManager=x", applyPatch, profileOf("free", `{"workloadIdentities":["no"]}`), "may not use WorkloadIdentity no"},
		"an identity that another profile has":     {w.writer, "POST", "", jsonBody, profileOf("new", `{"workloadIdentities":["kept"]}`), "may not use WorkloadIdentity kept"},
		"an identity with a shell's command":       {w.writer, "POST", "", jsonBody, profileOf("new", `{"workloadIdentities":["x; touch /tmp/owned"]}`), "is not the name of an object"},
		"a template":                               {w.writer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"templateRef":{"name":"no"}}}`), template},
		"a template changed":                       {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"securityContext":{"templateRef":{"name":"no"}}}}`, "may not use SecurityContextTemplate no"},
		"a template of a user with all else":       {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"templateRef":{"name":"no"}}}`), "may not use SecurityContextTemplate no"},
		"a gMSA account":                           {w.writer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"windows":{"gmsaCredentialSpecName":"no"}}}`), "--role=use-no --user=" + w.writer},
		"a gMSA account of a user with all else":   {w.namer, "PATCH", "/free", mergePatch, `{"spec":{"securityContext":{"windows":{"gmsaCredentialSpecName":"no"}}}}`, "may not use GMSACredentialSpec no"},
		"the contents of a gMSA account":           {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"windows":{"gmsaCredentialSpec":"{}"}}}`), "must be empty"},
		"a gMSA account with a shell's command":    {w.writer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"windows":{"gmsaCredentialSpecName":"x'; touch /tmp/owned"}}}`), "is not the name of an object"},
		"a name outside":                           {w.writer, "POST", "", jsonBody, profileOf("new", `{"username":"root@example.com"}`), namer},
		"a name outside changed":                   {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"username":"root@example.com"}}`, namer},
		"a name outside taken off":                 {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"username":null}}`, namer},
		"the default of another account":           {w.namer, "POST", "", jsonBody, profileOf("new", `{"username":"till.`+w.namespace+`@serviceaccounts.cluster.local"}`), notDefault},
		"the default of another namespace":         {w.namer, "POST", "", jsonBody, profileOf("new", `{"username":"new.another@serviceaccounts.cluster.local"}`), notDefault},
		"a name of the cluster":                    {w.namer, "POST", "", jsonBody, profileOf("new", `{"username":"system:admin"}`), "system:"},
		"a name with a control character":          {w.namer, "POST", "", jsonBody, profileOf("new", `{"username":"a\u0007b"}`), "must begin and end with"},
		"the status, by an admin of the cluster":   {"", "PATCH", "/cart/status", mergePatch, `{"status":{"username":"root@example.com"}}`, "credence-server profiles alone"},
		"the status, by a writer":                  {w.writer, "PATCH", "/cart/status", mergePatch, `{"status":{"conditions":[]}}`, "credence-server profiles alone"},
		"a profile left to the webhook":            {w.namer, "PATCH", "/cart", mergePatch, `{"metadata":{"labels":{"accounts.credence.dev/guarded-by":"webhook"}}}`, "credence-server profiles alone"},
		"a new profile left to the webhook":        {"", "POST", "", jsonBody, strings.Replace(profileOf("new", `{}`), `"name"`, `"labels":{"accounts.credence.dev/guarded-by":"x"},"name"`, 1), "credence-server profiles alone"},
		"a reader":                                 {w.viewer, "PATCH", "/cart", mergePatch, `{"spec":{"automountToken":true}}`, "cannot patch resource"},
		"a new profile of a reader":                {w.viewer, "POST", "", jsonBody, profileOf("new", `{}`), "cannot create resource"},
		"a template of a user of the namespace":    {w.namer, "PATCH", "/../../../securitycontexttemplates/no", mergePatch, `{}`, "cannot patch resource"},
		"an empty list of groups":                  {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"pod":{"supplementalGroups":[]}}}`), "must have 1 to 256 groups"},
		"too many identities":                      {w.namer, "POST", "", jsonBody, profileOf("new", identitiesWith(-1, 17)), "Too many"},
		"an identity twice":                        {w.namer, "POST", "", jsonBody, profileOf("new", `{"workloadIdentities":["i0","i0"]}`), "must have each name once"},
		"inline and a template":                    {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"templateRef":{"name":"yes"},"windows":{"gmsaCredentialSpecName":"no"}}}`), "either templateRef, or"},
		"the options of Windows in another place":  {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"pod":{"windowsOptions":{"gmsaCredentialSpecName":"no"}}}}`), "are the field windows"},
		"the options of Windows of the containers": {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"container":{"windowsOptions":{"gmsaCredentialSpecName":"no"}}}}`), "are the field windows"},
	}
	for i := range 16 { // at each place of the list
		attacks[fmt.Sprintf("identity %d", i)] = profileAttack{w.namer, "POST", "", jsonBody, profileOf("new", identitiesWith(i, 16)), "may not use WorkloadIdentity no,"}
	}
	return attacks
}

// identitiesWith is the spec of a profile with so many identities, of which one is named no.
func identitiesWith(no, n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("i%d", i)))
	}
	if no >= 0 {
		names[no] = `"no"`
	}
	return `{"workloadIdentities":[` + strings.Join(names, ",") + `]}`
}

// attack tries all of them, and what must be possible.
func (w profileWriters) attack(t *testing.T) {
	t.Helper()
	for name, try := range w.attacks() {
		code, answer := w.send(t, try.who, try.method, try.path, try.contentType, try.body)
		if code != http.StatusForbidden && code != http.StatusUnprocessableEntity || !strings.Contains(unquoted(answer), try.words) {
			t.Errorf("%s: %d %s, want a refusal with %q", name, code, answer, try.words)
		}
	}
	for name, try := range map[string]profileAttack{
		"another field, beside an identity that was there":  {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"automountToken":false}}`, ""},
		"labels of another account's profile":               {w.writer, "PATCH", "/till", mergePatch, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}}}`, ""},
		"fewer identities":                                  {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"workloadIdentities":[]}}`, ""},
		"no template":                                       {w.writer, "PATCH", "/cart", mergePatch, `{"spec":{"securityContext":null}}`, ""},
		"a deletion of the writer's":                        {w.writer, "DELETE", "/cart", "", "", ""},
		"sixteen identities":                                {w.namer, "POST", "", jsonBody, profileOf("new", identitiesWith(-1, 16)), ""},
		"a gMSA account":                                    {w.namer, "POST", "", jsonBody, profileOf("new", `{"securityContext":{"windows":{"gmsaCredentialSpecName":"yes"}}}`), ""},
		"the default as a name":                             {w.namer, "POST", "", jsonBody, profileOf("new", `{"username":"new.`+w.namespace+`@serviceaccounts.cluster.local"}`), ""},
		"the status by the process":                         {profilesProcess, "PATCH", "/cart/status", mergePatch, `{"status":{"username":"cart@example.com"}}`, ""},
		"a label by the process":                            {profilesProcess, "PATCH", "/cart", mergePatch, `{"metadata":{"labels":{"accounts.credence.dev/guarded-by":"webhook"}}}`, ""},
		"a deletion of the cluster's, with a namespace":     {"system:serviceaccount:kube-system:namespace-controller", "DELETE", "/till", "", "", ""},
		"a deletion of the cluster's, with an owner":        {"system:serviceaccount:kube-system:generic-garbage-collector", "DELETE", "/till", "", "", ""},
		"a reader reads":                                    {w.viewer, "GET", "/cart", "", "", ""},
		"an admin of the cluster, who has all these rights": {"", "POST", "", jsonBody, profileOf("other", `{"workloadIdentities":["no"],"username":"x@y.z","securityContext":{"templateRef":{"name":"no"}}}`), ""},
	} {
		if code, answer := w.send(t, try.who, try.method, try.path, try.contentType, try.body); code >= 300 {
			t.Errorf("%s: refused: %d %s", name, code, answer)
		}
	}
}

// withoutPolicy takes a policy of the plane away, and wants each attack admitted that it alone refused.
func (w profileWriters) withoutPolicy(t *testing.T, policy string) {
	t.Helper()
	refused := fmt.Sprintf("ValidatingAdmissionPolicy '%s'", policy)
	alone := w.attacks()
	for name, try := range alone {
		if _, answer := w.send(t, try.who, try.method, try.path, try.contentType, try.body); !strings.Contains(answer, refused) {
			delete(alone, name)
		}
	}
	if len(alone) < 3 {
		t.Fatalf("policy %s refuses %d attacks only", policy, len(alone))
	}
	w.must(t, "", "kubectl", "delete", "validatingadmissionpolicybinding", policy)
	for name, try := range alone {
		eventually(t, func() error {
			if code, answer := w.send(t, try.who, try.method, try.path, try.contentType, try.body); code >= 300 {
				return fmt.Errorf("%s: %d %s, want it admitted without the policy", name, code, answer)
			}
			return nil
		})
	}
}

// unquoted is an answer as a person reads it.
func unquoted(answer string) string {
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u003e`, ">", `\u0026`, "&").Replace(answer)
}

// A user may write a profile who may use its account, and all that is new in it.
func TestWhoMayWriteProfiles(t *testing.T) {
	inTurn(t)
	w := newProfileWriters(t, shared)
	shared.grantCluster(t, profilesProcess, rbacv1.PolicyRule{APIGroups: []string{"accounts.credence.dev"}, Resources: []string{"serviceaccountprofiles", "serviceaccountprofiles/status"}, Verbs: []string{"patch"}})
	eventually(t, func() error {
		if code, answer := w.send(t, profilesProcess, "PATCH", "/cart/status", mergePatch, `{"status":{"username":"x"}}`); code >= 300 {
			return fmt.Errorf("the process: %d %s", code, answer)
		}
		return nil
	})
	w.attack(t)
}

// The commands in refusals give the rights, as they stand.
func TestCommandsOfRefusalsAboutProfiles(t *testing.T) {
	inTurn(t)
	w := newProfileWriters(t, shared)
	for _, spec := range []string{
		`{"workloadIdentities":["no"]}`, `{"securityContext":{"templateRef":{"name":"no"}}}`, `{"securityContext":{"windows":{"gmsaCredentialSpecName":"no"}}}`, `{"username":"name-` + w.namespace + `@example.com"}`,
	} {
		code, answer := w.send(t, w.writer, "POST", "", jsonBody, profileOf("new", spec))
		_, command, found := strings.Cut(unquoted(answer), "with: ")
		command, _, ended := strings.Cut(command, `","reason"`)
		if code != http.StatusForbidden || !found || !ended {
			t.Errorf("%s: %d %s, want a command", spec, code, answer)
			continue
		}
		name := "profile-" + w.namespace + fmt.Sprint(len(spec))
		shared.sh(t, strings.Replace(command, " NAME ", " "+name+" ", 1))
		t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "clusterrolebinding", name, "--ignore-not-found") })
		eventually(t, func() error {
			if code, answer := w.send(t, w.writer, "POST", "", jsonBody, profileOf("new", spec)); code != http.StatusCreated {
				return fmt.Errorf("after %s: %d %s", command, code, answer)
			}
			return nil
		})
	}
	account := w.namespace + `-o'neill`
	shared.grant(t, w.namespace, user(account), rbacv1.PolicyRule{APIGroups: []string{"accounts.credence.dev"}, Resources: []string{"serviceaccountprofiles"}, Verbs: []string{"create"}})
	eventually(t, func() error {
		code, answer := w.send(t, account, "POST", "", jsonBody, profileOf("new", `{}`))
		if want := `-- '` + w.namespace + `-o'\''neill' new`; code != http.StatusForbidden || !strings.Contains(unquoted(answer), want) {
			return fmt.Errorf("%d %s, want %s", code, answer, want)
		}
		return nil
	})
}

// The cluster's own roles: an admin of a namespace writes its profiles, all others read them, and templates are the cluster's.
func TestRolesOfProfiles(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	can := func(role, verb, resource string, more ...string) bool {
		who := namespace + "-" + role
		_, _, code := shared.command(t, "", "kubectl", append([]string{"auth", "can-i", verb, resource, "-n", namespace, "--as", who}, more...)...)
		return code == 0
	}
	for _, role := range []string{"admin", "edit", "view", "credence:developer"} {
		shared.bind(t, namespace, role, user(namespace+"-"+role))
	}
	const profiles, templates = "serviceaccountprofiles.accounts.credence.dev", "securitycontexttemplates.accounts.credence.dev"
	eventually(t, func() error { // the aggregation is a controller's
		for _, role := range []string{"admin", "edit", "view", "credence:developer", "nothing"} {
			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				if can(role, verb, profiles) != (role == "admin") {
					return fmt.Errorf("%s may %s profiles: %v", role, verb, role != "admin")
				}
				if can(role, verb, templates) {
					return fatal{fmt.Errorf("%s may %s templates", role, verb)}
				}
			}
			if can(role, "get", profiles) != (role != "nothing") {
				return fmt.Errorf("%s reads profiles: %v", role, role == "nothing")
			}
			for _, resource := range []string{profiles, templates} {
				if can(role, "use", resource) || can(role, "set-username", resource) || can(role, "patch", resource, "--subresource=status") {
					return fatal{fmt.Errorf("%s has a right on %s that is given by name alone", role, resource)}
				}
			}
		}
		return nil
	})
}

// sh runs a command as an admin of the cluster types it.
func (p plane) sh(t *testing.T, command string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig, "PATH="+filepath.Dir(program("kubectl"))+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// grantCluster gives a user rights in the whole cluster until the test ends.
func (p plane) grantCluster(t *testing.T, who string, rule rbacv1.PolicyRule) {
	t.Helper()
	rbac := p.client(t).RbacV1()
	role := need(rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { p.command(t, "", "kubectl", "delete", "clusterrole", role.Name) })
	p.bindCluster(t, who, role.Name)
}
