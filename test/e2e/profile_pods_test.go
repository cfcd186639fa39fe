package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// The policies hold without the webhook: it has stopped, and kube-apiserver does not call it. Each of them is seen to be needed.
func TestPlaneProfileGuardsAlone(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	withoutWebhook(t, p)
	t.Run("accounts without the label", func(t *testing.T) { accountsWithoutTheLabel(t, p) })
	t.Run("accounts", func(t *testing.T) { newAccountUse(t, p, "enforce").waysAround(t) })
	if p.evaluations(t) == "" {
		t.Error("kube-apiserver has no metrics of policies that it evaluates")
	}
	p.grantCluster(t, profilesProcess, rbacv1.PolicyRule{APIGroups: []string{"accounts.credence.dev"}, Resources: []string{"serviceaccountprofiles", "serviceaccountprofiles/status"}, Verbs: []string{"patch"}})
	w := newProfileWriters(t, p)
	t.Run("profiles", w.attack)
	t.Run("pods", func(t *testing.T) { guardedPods(t, p) })
	for _, policy := range []string{"credence-profile-writers", "credence-profile-status"} {
		t.Run("without "+policy, func(t *testing.T) { w.withoutPolicy(t, policy) })
	}
}

const (
	enforcedPod       = `"runAsNonRoot":true,"runAsUser":20017,"fsGroup":20017,"seccompProfile":{"type":"RuntimeDefault"}`
	enforcedContainer = `"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}`
)

// guardedPods tries pods of accounts with profiles, which the policy credence-profile-pods alone decides about, and then those that it refused
// again, without the policy.
func guardedPods(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/profiles=enabled")
	w := profileWriters{plane: p, namespace: namespace}
	for _, profile := range []string{
		profileOf("cart", `{"securityContext":{"mode":"Enforce","pod":{`+enforcedPod+`},"container":{`+enforcedContainer+`}},"secrets":{"allowed":["tls"],"imagePull":["registry"]}}`),
		profileOf("caps", `{"securityContext":{"mode":"Enforce","container":{"capabilities":{"drop":["ALL"]}}}}`),
		profileOf("none", `{"secrets":{"allowed":[]}}`),
		profileOf("filled", `{"securityContext":{"pod":{`+enforcedPod+`}}}`),
		profileOf("blocked", `{"securityContext":{"pod":{"runAsUser":7}},"onChange":"BlockNew"}`),
		profileOf("win", `{"securityContext":{"mode":"Enforce","windows":{"hostProcess":false,"runAsUserName":"ContainerUser"}}}`),
		profileOf("local", `{"securityContext":{"mode":"Enforce","pod":{"seccompProfile":{"type":"Localhost","localhostProfile":"cart.json"},"runAsNonRoot":true,"appArmorProfile":{"type":"RuntimeDefault"}},"container":{"privileged":false,"runAsNonRoot":false,"readOnlyRootFilesystem":false,"procMount":"Default","runAsGroup":7}}}`),
	} {
		if code, answer := w.send(t, "", "POST", "?", jsonBody, profile); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for _, account := range []string{"cart", "none", "filled", "win", "local", "caps", "plain", "blocked"} {
		p.must(t, "", "kubectl", "create", "serviceaccount", account, "-n", namespace)
	}
	send := func(method, path, contentType, body string) (int, string) {
		got := do(t, p.config(t), method, pathOf(namespace, "pods")+path, contentType, body)
		return got.Code, string(got.Body)
	}
	pod := func(account, ofPod, ofContainer, container, spec string) string {
		return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{"serviceAccountName":%q,"securityContext":{%s},"containers":[{"name":"c","image":"i","securityContext":{%s}%s}]%s}}`, account, ofPod, ofContainer, container, spec)
	}
	cart := func(container, spec string) string {
		return pod("cart", enforcedPod, enforcedContainer, container, spec)
	}
	context := func(ofPod, ofContainer string) string { return pod("cart", ofPod, ofContainer, "", "") }
	without := func(all, field string) string {
		before, after, found := strings.Cut(all, field)
		if !found {
			t.Fatalf("%s does not have %s", all, field)
		}
		return strings.Trim(strings.ReplaceAll(before+after, ",,", ","), ",")
	}
	with := func(all, field, value string) string { return without(all, field) + "," + value }
	init := func(ofContainer string) string {
		return `,"initContainers":[{"name":"i","image":"i","securityContext":{` + ofContainer + `}}]`
	}
	volume := func(source string) string { return `,"volumes":[{"name":"v",` + source + `}]` }
	const notAllowed = "Secret db, which the pod names, is not allowed"
	attacks := map[string]struct{ body, words string }{
		"no context":                    {context("", ""), "container c: securityContext.runAsNonRoot is false, want true"},
		"another user":                  {context(with(enforcedPod, `"runAsUser":20017`, `"runAsUser":20018`), enforcedContainer), "container c: securityContext.runAsUser is 20018, want 20017"},
		"another user of the container": {context(enforcedPod, enforcedContainer+`,"runAsUser":0,"runAsNonRoot":true`), "container c: securityContext.runAsUser is 0, want 20017"},
		"root":                          {context(with(enforcedPod, `"runAsNonRoot":true`, `"runAsNonRoot":false`), enforcedContainer), "runAsNonRoot is false, want true"},
		"root in the container":         {context(enforcedPod, enforcedContainer+`,"runAsNonRoot":false`), "runAsNonRoot is false, want true"},
		"another group of files":        {context(with(enforcedPod, `"fsGroup":20017`, `"fsGroup":0`), enforcedContainer), "securityContext.fsGroup is 0, want 20017"},
		"no seccomp":                    {context(without(enforcedPod, `"seccompProfile":{"type":"RuntimeDefault"}`), enforcedContainer), "seccompProfile is unset, want RuntimeDefault"},
		"seccomp taken off":             {context(enforcedPod, enforcedContainer+`,"seccompProfile":{"type":"Unconfined"}`), "container c: securityContext.seccompProfile is Unconfined, want RuntimeDefault"},
		"privileges":                    {context(enforcedPod, with(enforcedContainer, `"allowPrivilegeEscalation":false`, `"allowPrivilegeEscalation":true`)), "allowPrivilegeEscalation is true, want false"},
		"privileges left open":          {context(enforcedPod, without(enforcedContainer, `"allowPrivilegeEscalation":false`)), "allowPrivilegeEscalation is true, want false"},
		"privileged":                    {pod("caps", "", `"privileged":true,"capabilities":{"drop":["ALL"]}`, "", ""), "container c: securityContext.privileged is true, want false"},
		"privileged, where it is named": {pod("local", `"seccompProfile":{"type":"Localhost","localhostProfile":"cart.json"},"appArmorProfile":{"type":"RuntimeDefault"},"runAsGroup":7`, `"privileged":true`, "", ""), "privileged is true, want false"},
		"a root file system":            {context(enforcedPod, without(enforcedContainer, `"readOnlyRootFilesystem":true`)), "readOnlyRootFilesystem is false, want true"},
		"a capability":                  {context(enforcedPod, strings.Replace(enforcedContainer, `"NET_BIND_SERVICE"`, `"NET_BIND_SERVICE","SYS_ADMIN"`, 1)), "capabilities.add has SYS_ADMIN"},
		"capabilities kept":             {context(enforcedPod, strings.Replace(enforcedContainer, `"ALL"`, `"CHOWN"`, 1)), "capabilities.drop is without ALL"},
		"an init container":             {cart("", init(`"runAsUser":0`)), "init container i: securityContext."},
		"another seccomp file":          {pod("local", `"seccompProfile":{"type":"Localhost","localhostProfile":"other.json"},"appArmorProfile":{"type":"RuntimeDefault"},"runAsGroup":7`, "", "", ""), "seccompProfile is Localhost other.json, want Localhost cart.json"},
		"no AppArmor":                   {pod("local", `"seccompProfile":{"type":"Localhost","localhostProfile":"cart.json"},"runAsGroup":7`, "", "", ""), "appArmorProfile is unset, want RuntimeDefault"},
		"another group":                 {pod("local", `"seccompProfile":{"type":"Localhost","localhostProfile":"cart.json"},"appArmorProfile":{"type":"RuntimeDefault"}`, `"runAsGroup":8`, "", ""), "runAsGroup is 8, want 7"},
		"a value that is blocked":       {pod("blocked", `"runAsUser":8`, "", "", ""), "runAsUser is 8, want 7"},
		"no operating system":           {pod("win", "", "", "", `,"nodeName":"windows-1"`), "spec.os.name is unset, want linux or windows"},
		"a process, no windows section": {pod("caps", `"windowsOptions":{"hostProcess":true}`, "", "", `,"os":{"name":"windows"},"hostNetwork":true`), "windowsOptions.hostProcess is true, want false"},
		"the same, of any system":       {pod("caps", "", `"capabilities":{"drop":["ALL"]},"windowsOptions":{"hostProcess":true}`, "", `,"hostNetwork":true`), "windowsOptions.hostProcess is true, want false"},
		"a process of the host":         {pod("win", `"windowsOptions":{"hostProcess":true,"runAsUserName":"ContainerUser"}`, "", "", `,"os":{"name":"windows"},"hostNetwork":true`), "windowsOptions.hostProcess is true, want false"},
		"another user of Windows":       {strings.Replace(pod("win", `"windowsOptions":{"runAsUserName":"ContainerAdministrator"}`, "", "", ""), `"containers"`, `"nodeSelector":{"kubernetes.io/os":"windows"},"containers"`, 1), "windowsOptions.runAsUserName is ContainerAdministrator, want ContainerUser"},
		"Windows by affinity":           {pod("win", "", `"windowsOptions":{"runAsUserName":"x"}`, "", `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["windows"]}]}]}}}`), "windowsOptions.runAsUserName is x, want ContainerUser"},
		"a Secret as a volume":          {cart("", volume(`"secret":{"secretName":"db"}`)), notAllowed},
		"a projected Secret":            {cart("", volume(`"projected":{"sources":[{"configMap":{"name":"a"}},{"secret":{"name":"tls"}},{"secret":{"name":"db"}}]}`)), notAllowed},
		"a Secret of a CSI driver":      {cart("", volume(`"csi":{"driver":"x","nodePublishSecretRef":{"name":"db"}}`)), notAllowed},
		"a Secret of a share":           {cart("", volume(`"azureFile":{"secretName":"db","shareName":"s"}`)), notAllowed},
		"a Secret in a variable":        {cart(`,"env":[{"name":"a","value":"b"},{"name":"P","valueFrom":{"secretKeyRef":{"name":"db","key":"k"}}}]`, ""), notAllowed},
		"an optional Secret":            {cart(`,"env":[{"name":"P","valueFrom":{"secretKeyRef":{"name":"db","key":"k","optional":true}}}]`, ""), notAllowed},
		"a Secret as variables":         {cart(`,"envFrom":[{"secretRef":{"name":"tls"}},{"secretRef":{"name":"db"}}]`, ""), notAllowed},
		"a Secret of an init container": {cart("", `,"initContainers":[{"name":"i","image":"i","securityContext":{`+enforcedContainer+`},"envFrom":[{"secretRef":{"name":"db"}}]}]`), notAllowed},
		"a Secret to pull images with":  {cart("", `,"imagePullSecrets":[{"name":"registry"},{"name":"db"}]`), notAllowed},
		"any Secret where none is":      {pod("none", "", "", "", volume(`"secret":{"secretName":"db"}`)), notAllowed},
	}
	admitted := map[string]string{
		"all that the profile wants":                          cart("", ""),
		"what is stricter":                                    context(enforcedPod, strings.Replace(enforcedContainer, `,"add":["NET_BIND_SERVICE"]`, "", 1)+`,"privileged":false`),
		"in the containers alone":                             context(`"fsGroup":20017`, enforcedContainer+","+without(enforcedPod, `"fsGroup":20017`)),
		"a file of seccomp":                                   context(enforcedPod, enforcedContainer+`,"seccompProfile":{"type":"Localhost","localhostProfile":"x.json"}`),
		"its Secrets":                                         cart(`,"envFrom":[{"secretRef":{"name":"tls"}}]`, `,"imagePullSecrets":[{"name":"registry"}]`+volume(`"secret":{"secretName":"tls"}`)),
		"no Secret where none is":                             pod("none", `"runAsUser":0`, "", "", ""),
		"what a profile fills in alone":                       pod("filled", "", "", "", volume(`"secret":{"secretName":"db"}`)),
		"an account without a profile":                        pod("plain", "", `"privileged":true`, "", volume(`"secret":{"secretName":"db"}`)),
		"Windows, with the fields of Linux open":              pod("win", `"windowsOptions":{"runAsUserName":"ContainerUser"}`, "", "", `,"os":{"name":"windows"}`),
		"Linux, of an account for Windows":                    pod("win", "", `"privileged":true`, "", `,"os":{"name":"linux"}`),
		"a file of seccomp that is named":                     pod("local", `"seccompProfile":{"type":"Localhost","localhostProfile":"cart.json"},"appArmorProfile":{"type":"Localhost","localhostProfile":"a"},"runAsGroup":7`, "", "", ""),
		"a pod of Windows that the profile has nothing about": pod("cart", "", "", "", `,"os":{"name":"windows"}`),
	}
	eventually(t, func() error { // kube-apiserver knows the kind, and the policy follows the profiles
		if code, answer := send("POST", "?dryRun=All", jsonBody, admitted["all that the profile wants"]); code != http.StatusCreated {
			return fmt.Errorf("%d %s", code, answer)
		}
		for name, try := range attacks {
			if code, answer := send("POST", "?dryRun=All", jsonBody, try.body); code == http.StatusCreated {
				return fmt.Errorf("%s: admitted: %s", name, answer)
			}
		}
		return nil
	})
	for name, try := range attacks {
		code, answer := send("POST", "?dryRun=All", jsonBody, try.body)
		if code != http.StatusForbidden || !strings.Contains(answer, try.words) || !strings.Contains(answer, "kubectl edit serviceaccountprofile ") {
			t.Errorf("%s: %d %s, want a refusal with %q", name, code, answer, try.words)
		}
	}
	for name, body := range admitted {
		if code, answer := send("POST", "?dryRun=All", jsonBody, body); code != http.StatusCreated {
			t.Errorf("%s: refused: %d %s", name, code, answer)
		}
	}
	if code, answer := send("POST", "", jsonBody, strings.Replace(cart("", ""), `"name":"p"`, `"name":"p","annotations":{"`+accounts.AnnotationFilledIn+`":"x"}`, 1)); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	ephemeral := func(container string) (int, string) {
		return send("PATCH", "/p/ephemeralcontainers?dryRun=All", strategic, `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"`+container+`}]}}`)
	}
	for container, words := range map[string]string{
		`,"securityContext":{` + enforcedContainer + `,"runAsUser":0}`:                                                             "ephemeral container e: securityContext.runAsUser is 0",
		`,"securityContext":{"allowPrivilegeEscalation":true}`:                                                                     "ephemeral container e: securityContext.",
		`,"securityContext":{` + enforcedContainer + `},"env":[{"name":"P","valueFrom":{"secretKeyRef":{"name":"db","key":"k"}}}]`: notAllowed,
	} {
		if code, answer := ephemeral(container); code != http.StatusForbidden || !strings.Contains(answer, words) {
			t.Errorf("ephemeral container %s: %d %s, want a refusal with %q", container, code, answer, words)
		}
	}
	if code, answer := ephemeral(`,"securityContext":{` + enforcedContainer + `}`); code != http.StatusOK {
		t.Errorf("an ephemeral container as the profile wants it: %d %s", code, answer)
	}
	p.must(t, "", "kubectl", "annotate", "pod", "p", "-n", namespace, "a=b")
	if _, errors, code := p.command(t, "", "kubectl", "annotate", "pod", "p", "-n", namespace, accounts.AnnotationFilledIn+"-"); code == 0 || !strings.Contains(errors, "leave it as it is") {
		t.Errorf("what was filled in is not noted any more: %d %s", code, errors)
	}
	other := fmt.Sprintf(`{"metadata":{"annotations":{%q:"spec.securityContext.runAsUser"}}}`, accounts.AnnotationFilledIn)
	if _, errors, code := p.command(t, "", "kubectl", "patch", "pod", "p", "-n", namespace, "--subresource", "status", "--type", "merge", "-p", other); code == 0 || !strings.Contains(errors, "leave it as it is") {
		t.Errorf("what was filled in is changed by the status: %d %s", code, errors)
	}
	binding := strings.TrimSuffix(strings.Replace(other, `"metadata":{`, `"metadata":{"name":"p",`, 1), "}") + `,"target":{"kind":"Node","name":"n"}}`
	expect(t, do(t, p.config(t), "POST", "/api/v1/namespaces/"+namespace+"/pods/p/binding", jsonBody, binding).is(http.StatusForbidden, "leave it as it is"), "what was filled in is changed by a binding")
	p.must(t, "", "kubectl", "delete", "validatingadmissionpolicybinding", "credence-profile-pods")
	for name, try := range attacks {
		eventually(t, func() error {
			if code, answer := send("POST", "?dryRun=All", jsonBody, strings.Replace(try.body, `"name":"p"`, `"name":"q"`, 1)); code != http.StatusCreated {
				return fmt.Errorf("%s: %d %s, want it admitted without the policy", name, code, answer)
			}
			return nil
		})
	}
}

// In a namespace with more profiles than the policy is evaluated with, the process leaves the rest to the webhook, and the condition Enforced of
// each has it. Profiles that refuse something come before those that only fill in.
func TestProfilesBeyondThePolicy(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/profiles=enabled")
	w := profileWriters{plane: shared, namespace: namespace}
	const more = 3
	create := func(name, spec string) {
		if code, answer := w.send(t, "", "POST", "?", jsonBody, profileOf(name, spec)); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for i := range accounts.PolicyProfiles + more - 1 {
		create(fmt.Sprintf("p%02d", i), `{"secrets":{"allowed":["tls"]}}`)
	}
	create("plain", `{}`)
	wants := func(reasons map[string]int, left int) {
		t.Helper()
		eventually(t, func() error {
			got, labeled := map[string]int{}, 0
			for line := range strings.Lines(shared.must(t, "", "kubectl", "get", "serviceaccountprofiles", "-n", namespace, "-o",
				`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Enforced")].reason} {.metadata.labels.accounts\.credence\.dev/guarded-by}{"\n"}{end}`)) {
				reason, label, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				got[reason]++
				if label == "webhook" {
					labeled++
				}
			}
			if !maps.Equal(got, reasons) || labeled != left {
				return fmt.Errorf("reasons %v, %d left to the webhook, want %v and %d", got, labeled, reasons, left)
			}
			return nil
		})
	}
	wants(map[string]int{"WebhookAndPolicy": accounts.PolicyProfiles, "WebhookAlone": more - 1, "NothingToRefuse": 1}, more)
	if code, answer := w.send(t, "", "PATCH", "/plain", mergePatch, `{"metadata":{"labels":{"accounts.credence.dev/guarded-by":null}}}`); code != http.StatusForbidden || !strings.Contains(answer, "leave it as it is") {
		t.Errorf("the label taken off: %d %s", code, answer)
	}
	for i := range more {
		shared.must(t, "", "kubectl", "delete", "serviceaccountprofile", "-n", namespace, fmt.Sprintf("p%02d", i))
	}
	wants(map[string]int{"WebhookAndPolicy": accounts.PolicyProfiles - 1, "NothingToRefuse": 1}, 0)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/profiles-")
	wants(map[string]int{"NamespaceNotEnabled": accounts.PolicyProfiles}, 0)
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/workload-identities=enabled")
	wants(map[string]int{"WebhookAlone": accounts.PolicyProfiles - 1, "NothingToRefuse": 1}, 0)
}
