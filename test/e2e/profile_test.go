package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// profiled is a namespace with a service account cart, whose profiles are applied.
type profiled struct {
	plane
	namespace string
}

func newProfiled(t *testing.T, of plane, labels ...string) profiled {
	t.Helper()
	p := profiled{of, of.namespace(t)}
	client := p.client(t).CoreV1()
	need(client.ServiceAccounts(p.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{}))(t)
	set := map[string]string{}
	for _, label := range append(labels, accounts.LabelNamespaceProfiles) {
		set[label] = accounts.NamespaceEnabled
	}
	patch := need(json.Marshal(map[string]any{"metadata": map[string]any{"labels": set}}))(t)
	need(client.Namespaces().Patch(t.Context(), p.namespace, types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	p.profile(t, "default", `{"automountToken":true}`)
	eventually(t, func() error { // until the API server knows the label
		pod, answer := p.pod(t, `{"serviceAccountName":"default","containers":[{"name":"c","image":"i"}]}`, true)
		if pod == nil || pod.Annotations[accounts.AnnotationFilledIn] == "" {
			return fmt.Errorf("the profile is not applied yet: %s", answer)
		}
		return nil
	})
	return p
}

const accountsRoot = "/apis/accounts.credence.dev/v1alpha1"

// profile writes the profile of an account.
func (p profiled) profile(t *testing.T, account, spec string) {
	t.Helper()
	path := accountsRoot + "/namespaces/" + p.namespace + "/serviceaccountprofiles/" + account + "?fieldManager=test&force=true"
	body := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":%q},"spec":%s}`, account, spec)
	if got := do(t, p.config(t), "PATCH", path, "application/apply-patch+yaml", body); got.Code != http.StatusOK && got.Code != http.StatusCreated {
		t.Fatalf("profile: %d %s", got.Code, got.Body)
	}
}

func (p profiled) template(t *testing.T, spec string) (name string) {
	t.Helper()
	name = p.namespace + "-template"
	path := accountsRoot + "/securitycontexttemplates/" + name
	body := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"SecurityContextTemplate","metadata":{"name":%q},"spec":%s}`, name, spec)
	if got := do(t, p.config(t), "PATCH", path+"?fieldManager=test&force=true", "application/apply-patch+yaml", body); got.Code != http.StatusOK && got.Code != http.StatusCreated {
		t.Fatalf("template: %d %s", got.Code, got.Body)
	}
	t.Cleanup(func() {
		_ = p.client(t).CoreV1().RESTClient().Delete().AbsPath(path).Do(context.WithoutCancel(t.Context())).Error()
	})
	return name
}

// create creates a pod with a spec; the answer is why it was refused.
func (p profiled) pod(t *testing.T, spec string, dryRun bool, annotations ...string) (pod *corev1.Pod, answer string) {
	t.Helper()
	path := "/api/v1/namespaces/" + p.namespace + "/pods"
	if dryRun {
		path += "?dryRun=All"
	}
	metadata := map[string]any{"generateName": "p-"}
	if len(annotations) > 0 {
		metadata["annotations"] = pairs(annotations[0])
	}
	head := need(json.Marshal(metadata))(t)
	got := do(t, p.config(t), "POST", path, jsonBody, fmt.Sprintf(`{"metadata":%s,"spec":%s}`, head, spec))
	if got.Code != http.StatusCreated {
		var status metav1.Status
		_ = json.Unmarshal(got.Body, &status)
		return nil, status.Message
	}
	pod = &corev1.Pod{}
	must(t, json.Unmarshal(got.Body, pod))
	return pod, strings.Join(got.Header.Values("Warning"), " ")
}

// mustCreate creates a pod for good.
func (p profiled) mustCreate(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	pod, answer := p.pod(t, spec, false)
	if pod == nil {
		t.Fatalf("refused: %s", answer)
	}
	return pod
}

// debug adds an ephemeral container to a pod.
func (p profiled) debug(t *testing.T, pod, container string) (*corev1.Pod, string) {
	t.Helper()
	got := do(t, p.config(t), "PATCH", "/api/v1/namespaces/"+p.namespace+"/pods/"+pod+"/ephemeralcontainers", strategic, `{"spec":{"ephemeralContainers":[`+container+`]}}`)
	if got.Code != http.StatusOK {
		var status metav1.Status
		_ = json.Unmarshal(got.Body, &status)
		return nil, status.Message
	}
	changed := &corev1.Pod{}
	must(t, json.Unmarshal(got.Body, changed))
	return changed, ""
}

const (
	restricted = `"pod":{"runAsUser":20017,"runAsNonRoot":true,"fsGroup":20017,"supplementalGroups":[20017],"seccompProfile":{"type":"RuntimeDefault"}},
		"container":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}`
	// cartPod is a pod of the account with more fields of its spec, and of its container.
	cartPod = `{"serviceAccountName":"cart",%s"containers":[{"name":"c","image":"i"%s}]}`
)

func cart(spec, container string) string {
	if spec != "" {
		spec += ","
	}
	if container != "" {
		container = "," + container
	}
	return fmt.Sprintf(cartPod, spec, container)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	return string(need(json.Marshal(v))(t))
}

// Fields that a pod leaves open are filled in, and those that it has stay.
func TestProfileFillsIn(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared)
	p.profile(t, "cart", `{"securityContext":{`+restricted+`},"secrets":{"imagePull":["registry"]},"automountToken":false}`)
	pod := p.mustCreate(t, cart(`"initContainers":[{"name":"i","image":"i","securityContext":{"runAsUser":7,"allowPrivilegeEscalation":true}}]`, ""))
	contexts := *pod.Spec.SecurityContext
	if want := `{"runAsUser":20017,"runAsNonRoot":true,"supplementalGroups":[20017],"fsGroup":20017,"seccompProfile":{"type":"RuntimeDefault"}}`; asJSON(t, contexts) != want {
		t.Errorf("pod: %s, want %s", asJSON(t, contexts), want)
	}
	if got, want := asJSON(t, pod.Spec.Containers[0].SecurityContext), `{"capabilities":{"drop":["ALL"]},"allowPrivilegeEscalation":false}`; got != want {
		t.Errorf("container: %s, want %s", got, want)
	}
	if got, want := asJSON(t, pod.Spec.InitContainers[0].SecurityContext), `{"capabilities":{"drop":["ALL"]},"runAsUser":7,"allowPrivilegeEscalation":true}`; got != want {
		t.Errorf("init container: %s, want %s", got, want)
	}
	if got := asJSON(t, pod.Spec.ImagePullSecrets); got != `[{"name":"registry"}]` {
		t.Errorf("imagePullSecrets %s", got)
	}
	if len(pod.Spec.Volumes) != 0 || len(pod.Spec.Containers[0].VolumeMounts) != 0 || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("a token is mounted: %s", asJSON(t, pod.Spec))
	}
	for _, path := range []string{"spec.securityContext.runAsUser", "spec.containers[c].securityContext.capabilities", "spec.initContainers[i].securityContext.capabilities", "spec.automountServiceAccountToken"} {
		if !slices.Contains(strings.Split(pod.Annotations[accounts.AnnotationFilledIn], ","), path) {
			t.Errorf("%s is not noted in %s", path, pod.Annotations[accounts.AnnotationFilledIn])
		}
	}

	own := p.mustCreate(t, cart(`"automountServiceAccountToken":true,"imagePullSecrets":[{"name":"mine"}],"securityContext":{"runAsUser":1,"runAsNonRoot":false}`, `"securityContext":{"privileged":true,"runAsUser":0}`))
	if *own.Spec.SecurityContext.RunAsUser != 1 || *own.Spec.Containers[0].SecurityContext.RunAsUser != 0 || own.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation != nil ||
		len(own.Spec.Volumes) != 1 || own.Spec.ImagePullSecrets[0].Name != "mine" {
		t.Errorf("what the pod has did not stay: %s", asJSON(t, own.Spec))
	}
	debugged, answer := p.debug(t, pod.Name, `{"name":"d","image":"i"}`)
	if debugged == nil {
		t.Fatal(answer)
	}
	if got, want := asJSON(t, debugged.Spec.EphemeralContainers[0].SecurityContext), `{"capabilities":{"drop":["ALL"]},"allowPrivilegeEscalation":false}`; got != want {
		t.Errorf("ephemeral container: %s, want %s", got, want)
	}

	// The token that the account itself leaves out.
	p.profile(t, "cart", `{"automountToken":true}`)
	patch := []byte(`{"automountServiceAccountToken":false}`)
	need(shared.client(t).CoreV1().ServiceAccounts(p.namespace).Patch(t.Context(), "cart", types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	eventually(t, func() error {
		if pod, answer := p.pod(t, cart("", ""), true); pod == nil || len(pod.Spec.Volumes) != 1 {
			return fmt.Errorf("the profile's token is not mounted: %s", answer)
		}
		return nil
	})

	// A template, and the end of the profile: pods that run stay as they are.
	name := p.template(t, `{"pod":{"runAsUser":33}}`)
	p.profile(t, "cart", `{"securityContext":{"templateRef":{"name":"`+name+`"}}}`)
	if pod, answer := p.pod(t, cart("", ""), true); pod == nil || *pod.Spec.SecurityContext.RunAsUser != 33 {
		t.Errorf("the template is not applied: %s", answer)
	}
	stdout := shared.must(t, "", "credence", "explain", "pod", pod.Name, "-n", p.namespace)
	expect(t, lacks(stdout, ": admitted\n", "profile     cart, mode Default, of SecurityContextTemplate "+name, "fills in  spec.securityContext.runAsUser: 33"), "explain")
	must(t, do(t, shared.config(t), "DELETE", accountsRoot+"/namespaces/"+p.namespace+"/serviceaccountprofiles/cart", "", "").is(http.StatusOK))
	if after, err := shared.client(t).CoreV1().Pods(p.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil || *after.Spec.SecurityContext.RunAsUser != 20017 {
		t.Errorf("a pod of a deleted profile: %v", err)
	}
	if pod, answer := p.pod(t, cart("", ""), true); pod == nil || pod.Annotations[accounts.AnnotationFilledIn] != "" {
		t.Errorf("a deleted profile is applied: %s", answer)
	}
}

// The API server writes annotations of AppArmor into containers after the webhooks, and adds ones of its own. A pod that counts as one of Linux stays one.
func TestProfileOfAppArmorAndSystems(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared)
	p.profile(t, "cart", `{"securityContext":{"mode":"Enforce","container":{"appArmorProfile":{"type":"RuntimeDefault"}},"windows":{"hostProcess":false}}}`)
	const annotation = "container.apparmor.security.beta.kubernetes.io/c"
	if pod, answer := p.pod(t, cart("", ""), true, annotation+"=unconfined"); pod != nil || !strings.Contains(answer, `securityContext.appArmorProfile: has {\"type\":\"Unconfined\"}`) && !strings.Contains(answer, `securityContext.appArmorProfile: has {"type":"Unconfined"}`) {
		t.Errorf("unconfined by an annotation: %q", answer)
	}
	if pod, answer := p.pod(t, cart("", ""), true, annotation+"=runtime/default"); pod == nil {
		t.Errorf("as the profile wants it, by an annotation: %s", answer)
	}
	pod := p.mustCreate(t, cart("", ""))
	if pod.Spec.OS == nil || pod.Spec.OS.Name != corev1.Linux {
		t.Errorf("the operating system is %v", pod.Spec.OS)
	}
	if stdout, stderr, code := shared.command(t, "", "credence", "drift", "-n", p.namespace); code != 0 {
		t.Errorf("of the pod %s %s: %d %s%s", asJSON(t, pod.Annotations), asJSON(t, pod.Spec.Containers[0].SecurityContext), code, stdout, stderr)
	}
}

// Ways to have something weaker than the profile, or a Secret that it does not allow.
func TestProfileRefuses(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared)
	p.profile(t, "cart", `{"securityContext":{"mode":"Enforce",`+restricted+`,"windows":{"hostProcess":false,"runAsUserName":"ContainerUser"}},"secrets":{"allowed":["tls"],"imagePull":["registry"]}}`)
	if pod, answer := p.pod(t, cart("", ""), true); pod == nil {
		t.Fatalf("a pod that leaves all open is refused: %s", answer)
	}
	stricter := cart(`"securityContext":{"supplementalGroups":[20017]}`, `"securityContext":{"readOnlyRootFilesystem":true,"privileged":false,"capabilities":{"drop":["ALL","KILL"]}},"envFrom":[{"secretRef":{"name":"tls"}}]`)
	if pod, answer := p.pod(t, stricter, true); pod == nil {
		t.Errorf("a stricter pod is refused: %s", answer)
	}
	for name, c := range map[string]struct{ spec, field string }{
		"root in the pod":                {cart(`"securityContext":{"runAsUser":0}`, ""), "spec.securityContext.runAsUser: has 0"},
		"root in a container":            {cart("", `"securityContext":{"runAsUser":0}`), "spec.containers[0].securityContext.runAsUser: has 0"},
		"root in an init container":      {cart(`"initContainers":[{"name":"i","image":"i","securityContext":{"runAsUser":0}}]`, ""), "spec.initContainers[0].securityContext.runAsUser"},
		"root allowed":                   {cart("", `"securityContext":{"runAsNonRoot":false}`), "spec.containers[0].securityContext.runAsNonRoot: has false"},
		"another file group":             {cart(`"securityContext":{"fsGroup":0}`, ""), "spec.securityContext.fsGroup: has 0"},
		"another supplemental group":     {cart(`"securityContext":{"supplementalGroups":[20017,0]}`, ""), "spec.securityContext.supplementalGroups"},
		"privileged":                     {cart("", `"securityContext":{"privileged":true}`), "securityContext.privileged: has true"},
		"privileged beside drop":         {cart("", `"securityContext":{"privileged":true,"allowPrivilegeEscalation":true,"capabilities":{"drop":["ALL"]}}`), "securityContext.privileged: has true"},
		"escalation":                     {cart("", `"securityContext":{"allowPrivilegeEscalation":true}`), "securityContext.allowPrivilegeEscalation: has true"},
		"an added capability":            {cart("", `"securityContext":{"capabilities":{"drop":["ALL"],"add":["NET_ADMIN"]}}`), "securityContext.capabilities"},
		"all capabilities in small":      {cart("", `"securityContext":{"capabilities":{"drop":["ALL"],"add":["all"]}}`), "securityContext.capabilities"},
		"no dropped capability":          {cart("", `"securityContext":{"capabilities":{}}`), "securityContext.capabilities"},
		"unconfined":                     {cart("", `"securityContext":{"seccompProfile":{"type":"Unconfined"}}`), "securityContext.seccompProfile"},
		"nodes of either system":         {cart(`"securityContext":{"runAsUser":0},"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["linux","windows"]}]}]}}}`, ""), "spec.securityContext.runAsUser"},
		"Linux in the end":               {cart(`"securityContext":{"runAsUser":0},"os":{"name":"linux"},"nodeSelector":{"kubernetes.io/os":"windows"}`, ""), "spec.securityContext.runAsUser"},
		"a Windows host process":         {cart(`"hostNetwork":true,"securityContext":{"windowsOptions":{"hostProcess":true}}`, ""), "windowsOptions.hostProcess: has true"},
		"a Windows administrator":        {cart(`"os":{"name":"windows"}`, `"securityContext":{"windowsOptions":{"runAsUserName":"ContainerAdministrator"}}`), "spec.containers[0].securityContext.windowsOptions.runAsUserName"},
		"the account's older field":      {strings.Replace(cart(`"securityContext":{"runAsUser":0}`, ""), "serviceAccountName", "serviceAccount", 1), "spec.securityContext.runAsUser"},
		"a volume":                       {cart(`"volumes":[{"name":"v","secret":{"secretName":"other"}}]`, ""), "spec.volumes[0].secret"},
		"an optional volume":             {cart(`"volumes":[{"name":"v","secret":{"secretName":"other","optional":true}}]`, ""), "spec.volumes[0].secret"},
		"a projected volume":             {cart(`"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"tls"}},{"secret":{"name":"other"}}]}}]`, ""), "spec.volumes[0].projected.sources[1].secret"},
		"a driver's Secret":              {cart(`"volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"other"}}}]`, ""), "spec.volumes[0].csi.nodePublishSecretRef"},
		"a variable":                     {cart("", `"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}]`), "spec.containers[0].env[0].valueFrom.secretKeyRef"},
		"variables of an init container": {cart(`"initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"other"}}]}]`, ""), "spec.initContainers[0].envFrom[0].secretRef"},
		"a registry":                     {cart(`"imagePullSecrets":[{"name":"other"}]`, ""), "spec.imagePullSecrets[0]"},
		"another account's token":        {cart(`"volumes":[{"name":"v","secret":{"secretName":"credence-token-till-x-0123456789"}}]`, ""), "spec.volumes[0].secret"},
	} {
		pod, answer := p.pod(t, c.spec, true)
		if pod != nil || !strings.Contains(answer, c.field) || !strings.Contains(answer, "ServiceAccountProfile "+p.namespace+"/cart") || !strings.Contains(answer, "kubectl edit serviceaccountprofile cart -n "+p.namespace) {
			t.Errorf("%s: admitted %t, answer %q, want one with %q, and how the profile is changed", name, pod != nil, answer, c.field)
		}
		// The author cannot pass a value off as one that was filled in.
		if pod, answer := p.pod(t, c.spec, true, accounts.AnnotationFilledIn+"=spec.securityContext.runAsUser,spec.containers[c].securityContext.capabilities"); pod != nil {
			t.Errorf("%s, with the annotation: admitted: %s", name, answer)
		}
	}
	pod := p.mustCreate(t, cart("", ""))
	for name, c := range map[string]struct{ container, field string }{
		"root":       {`{"name":"d","image":"i","securityContext":{"runAsUser":0}}`, "spec.ephemeralContainers[0].securityContext.runAsUser: has 0"},
		"privileged": {`{"name":"d","image":"i","securityContext":{"privileged":true,"allowPrivilegeEscalation":true}}`, "spec.ephemeralContainers[0].securityContext.privileged"},
		"a variable": {`{"name":"d","image":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}]}`, "spec.ephemeralContainers[0].env[0].valueFrom.secretKeyRef"},
	} {
		if changed, answer := p.debug(t, pod.Name, c.container); changed != nil || !strings.Contains(answer, c.field) {
			t.Errorf("ephemeral container, %s: %q, want %q", name, answer, c.field)
		}
	}
	// The author of a workload is warned.
	body := `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":` + cart("", `"securityContext":{"runAsUser":0}`) + `}}}`
	if got := do(t, shared.config(t), "POST", "/apis/apps/v1/namespaces/"+p.namespace+"/deployments?dryRun=All", jsonBody, body); !strings.Contains(strings.Join(got.Header.Values("Warning"), " "), "securityContext.runAsUser: has 0") {
		t.Errorf("a Deployment: %d, warnings %q", got.Code, got.Header.Values("Warning"))
	}
	stdout, _, code := shared.command(t, strings.Replace(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad"},"spec":SPEC}`, "SPEC", cart("", `"securityContext":{"runAsUser":0}`), 1), "credence", "explain", "-f", "-", "-n", p.namespace)
	if code != 1 || !strings.Contains(stdout, "refused (403)") || !strings.Contains(stdout, "spec.containers[0].securityContext.runAsUser: has 0") {
		t.Errorf("explain: exit code %d\n%s", code, stdout)
	}

	// A profile that can't be applied refuses all pods, in the words of Kubernetes.
	p.profile(t, "cart", `{"securityContext":{"container":{"allowPrivilegeEscalation":false,"privileged":true}}}`)
	if pod, answer := p.pod(t, cart("", ""), true); pod != nil || !strings.Contains(answer, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true") {
		t.Errorf("a context that Kubernetes refuses: %q", answer)
	}
	p.profile(t, "cart", `{"securityContext":{"templateRef":{"name":"`+p.namespace+`-nowhere"}}}`)
	if pod, answer := p.pod(t, cart("", ""), true); pod != nil || !strings.Contains(answer, `spec.securityContext.templateRef.name: Not found: "`+p.namespace+`-nowhere"`) {
		t.Errorf("a template that does not exist: %q", answer)
	}
	p.profile(t, "cart", `{"secrets":{"allowed":[]}}`)
	if pod, answer := p.pod(t, cart(`"imagePullSecrets":[{"name":"tls"}]`, ""), true); pod != nil || !strings.Contains(answer, "allows no Secret") {
		t.Errorf("no Secret is allowed: %q", answer)
	}
}

// The account of Active Directory that a profile fills in is reviewed, and its contents filled in after it.
func TestProfileOfWindowsPods(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared)
	spec := p.namespace + "-web"
	shared.createSpec(t, spec)
	p.profile(t, "cart", `{"securityContext":{"mode":"Enforce","pod":{"runAsUser":20017,"runAsNonRoot":true},"windows":{"gmsaCredentialSpecName":"`+spec+`"}}}`)
	windows := cart(`"os":{"name":"windows"}`, "")
	if pod, answer := p.pod(t, windows, true); pod != nil || !strings.Contains(answer, spec) {
		t.Errorf("an account that the service account may not use: %q", answer)
	}
	shared.grant(t, p.namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "cart", Namespace: p.namespace},
		rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{spec}, Verbs: []string{"use"}})
	var pod *corev1.Pod
	eventually(t, func() error {
		var answer string
		if pod, answer = p.pod(t, windows, false); pod == nil {
			return fmt.Errorf("refused: %s", answer)
		}
		return nil
	})
	options := pod.Spec.SecurityContext.WindowsOptions
	if options == nil || *options.GMSACredentialSpecName != spec || options.GMSACredentialSpec == nil || *options.GMSACredentialSpec != credentialContents ||
		pod.Spec.SecurityContext.RunAsUser != nil || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("a Windows pod has %s", asJSON(t, pod.Spec.SecurityContext))
	}
	if pod, answer := p.pod(t, cart(`"os":{"name":"windows"},"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"`+spec+`-other"}}`, ""), true); pod != nil || !strings.Contains(answer, "windowsOptions.gmsaCredentialSpecName: has "+spec+"-other") {
		t.Errorf("another account: %q", answer)
	}
}

// A namespace of a thousand profiles admits pods as one of two does.
func TestThousandProfiles(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared)
	p.profile(t, "cart", `{"securityContext":{`+restricted+`}}`)
	config := shared.config(t)
	var group sync.WaitGroup
	for worker := range 10 {
		group.Go(func() {
			for i := range 100 {
				body := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":"a-%d-%d"},"spec":{"securityContext":{"mode":"Enforce","pod":{"runAsUser":7}}}}`, worker, i)
				expect(t, do(t, config, "POST", accountsRoot+"/namespaces/"+p.namespace+"/serviceaccountprofiles", jsonBody, body).is(http.StatusCreated))
			}
		})
	}
	group.Wait()
	if pod := p.mustCreate(t, cart("", "")); *pod.Spec.SecurityContext.RunAsUser != 20017 {
		t.Errorf("the pod has %s", asJSON(t, pod.Spec.SecurityContext))
	}
}

// The identities of a profile are delivered as those of the annotation are. Both at once are refused.
func TestProfileGivesIdentities(t *testing.T) {
	inTurn(t)
	p := newProfiled(t, shared, v1alpha1.LabelNamespaceIdentities)
	p.profile(t, "cart", `{"workloadIdentities":["banana"],"secrets":{"allowed":[]}}`)
	client := shared.client(t).CoreV1()
	shared.create(t, p.namespace, "banana", "vault", "sts")
	shared.bind(t, p.namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "cart", Namespace: p.namespace})
	shared.bind(t, p.namespace, "credence:agent:identities", rbacv1.Subject{Kind: "ServiceAccount", Name: "credence-agent", Namespace: "credence-system"})
	var pod *corev1.Pod
	eventually(t, func() error {
		var answer string
		if pod, answer = p.pod(t, cart("", ""), false); pod == nil || len(pod.Spec.SchedulingGates) == 0 {
			return fmt.Errorf("the pod gets no identity: %s", answer)
		}
		return nil
	})
	eventually(t, func() error { // the agent has delivered the token
		found, err := client.Pods(p.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil && len(found.Spec.SchedulingGates) > 0 {
			return errors.New("the pod waits for its token")
		}
		return err
	})
	stdout := shared.must(t, "", "credence", "explain", "pod", pod.Name, "-n", p.namespace)
	if !strings.Contains(stdout, "cart, which lists 1 identity in its profile") || !strings.Contains(stdout, "identity banana") {
		t.Errorf("explain:\n%s", stdout)
	}
	refused(t, "the annotation beside the profile", errOf(client.ServiceAccounts(p.namespace).Patch(t.Context(), "cart", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, "banana"), metav1.PatchOptions{})), "only one of them may")
	p.profile(t, "cart", `{}`)
	allowed(t, "the annotation alone", errOf(client.ServiceAccounts(p.namespace).Patch(t.Context(), "cart", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, "banana"), metav1.PatchOptions{})))
	p.profile(t, "cart", `{"workloadIdentities":["banana"]}`)
	if pod, answer := p.pod(t, cart("", ""), true); pod != nil || !strings.Contains(answer, "only one of them may") {
		t.Errorf("a pod of an account with both: %q", answer)
	}
	// An empty list gives none, whatever the annotation was.
	allowed(t, "no annotation", errOf(client.ServiceAccounts(p.namespace).Patch(t.Context(), "cart", types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})))
	p.profile(t, "cart", `{"workloadIdentities":[]}`)
	eventually(t, func() error { // the service account is read as it is, a moment after its change
		if pod, answer := p.pod(t, cart("", ""), true); pod == nil || len(pod.Spec.SchedulingGates) > 0 {
			return fmt.Errorf("an empty list: %s", answer)
		}
		return nil
	})
}

// The processes of a pod whose profile was filled in are what it has.
func podIsWhatItsProfileHas(t *testing.T, of plane) {
	p := newProfiled(t, of)
	p.profile(t, "cart", `{"securityContext":{"mode":"Enforce","pod":{"runAsUser":20017,"runAsGroup":20018,"runAsNonRoot":true,"fsGroup":20019,"supplementalGroups":[20020],"seccompProfile":{"type":"RuntimeDefault"}},
		"container":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}},"automountToken":false}`)
	pod := p.mustCreate(t, `{"serviceAccountName":"cart","hostNetwork":true,"restartPolicy":"Never","volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"busybox:e2e","imagePullPolicy":"Never","volumeMounts":[{"name":"v","mountPath":"/v"}],
		"command":["/busybox","sh","-c","exec 2>&1; /busybox cat /proc/self/status; /busybox touch /v/file /file; /busybox stat -c 'owner %u %g' /v/file; echo end"]}]}`)
	p.waitForLog(t, p.namespace, pod.Name, "end")
	printed := p.must(t, "", "kubectl", "-n", p.namespace, "logs", pod.Name)
	for _, want := range []string{
		"Uid:\t20017\t20017\t20017\t20017\n", "Gid:\t20018\t20018\t20018\t20018\n", "Groups:\t20018 20019 20020 \n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		"CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000400\n",
		"owner 20017 20019\n", "touch: /file: Read-only file system",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("the process lacks %q:\n%s", want, printed)
		}
	}
	if strings.Contains(asJSON(t, pod.Spec.Volumes), "kube-api-access") {
		t.Error("the pod has a token")
	}
}
