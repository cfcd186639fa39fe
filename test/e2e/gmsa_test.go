package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// credentialSpec is the object of the requirement document, under another name.
func credentialSpec(apiVersion, name string) string {
	return `{"apiVersion":"` + apiVersion + `","kind":"GMSACredentialSpec","metadata":{"name":"` + name + `"},"credspec":{
		"ActiveDirectoryConfig":{"GroupManagedServiceAccounts":[{"Name":"WebApplication1","Scope":"CONTOSO"},{"Name":"WebApplication1","Scope":"contoso.com"}]},
		"CmsPlugins":["ActiveDirectory"],
		"DomainJoinConfig":{"DnsName":"contoso.com","DnsTreeName":"contoso.com","Guid":"244818ae-87ca-4fcd-92ec-e79e5252348a","MachineAccountName":"WebApplication1","NetBiosName":"CONTOSO","Sid":"S-1-5-21-2126729477-2524075714-3094792973"}}}`
}

// credentialContents are what pods get of it.
const credentialContents = `{"ActiveDirectoryConfig":{"GroupManagedServiceAccounts":[{"Name":"WebApplication1","Scope":"CONTOSO"},{"Name":"WebApplication1","Scope":"contoso.com"}]},` +
	`"CmsPlugins":["ActiveDirectory"],` +
	`"DomainJoinConfig":{"DnsName":"contoso.com","DnsTreeName":"contoso.com","Guid":"244818ae-87ca-4fcd-92ec-e79e5252348a","MachineAccountName":"WebApplication1","NetBiosName":"CONTOSO","Sid":"S-1-5-21-2126729477-2524075714-3094792973"}}`

// credentialSpecs makes objects of these names, and a namespace whose service account default may use them, by a role of names.
func (p plane) credentialSpecs(t *testing.T, names ...string) (namespace string, spec func(name string) string) {
	t.Helper()
	namespace = p.namespace(t)
	spec = func(name string) string { return namespace + "-" + name }
	var full []string
	for _, name := range names {
		full = append(full, spec(name))
		p.createSpec(t, spec(name))
	}
	if len(names) > 0 {
		p.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "default", Namespace: namespace},
			rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: full, Verbs: []string{"use"}})
		pods := p.client(t).CoreV1().Pods(namespace)
		eventually(t, func() error {
			return errOf(pods.Create(t.Context(), windowsPod(gmsaOf(full[len(full)-1], "")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		})
	}
	return namespace, spec
}

func (p plane) createSpec(t *testing.T, name string) {
	t.Helper()
	const path = "/apis/windows.k8s.io/v1/gmsacredentialspecs"
	must(t, do(t, p.config(t), "POST", path, "application/json", credentialSpec("windows.k8s.io/v1", name)).is(201), "create GMSACredentialSpec", name)
	t.Cleanup(func() { // there may be no such object any more
		_ = p.client(t).CoreV1().RESTClient().Delete().AbsPath(path, name).Do(context.WithoutCancel(t.Context())).Error()
	})
}

func gmsaOf(name, contents string) *corev1.WindowsSecurityContextOptions {
	options := &corev1.WindowsSecurityContextOptions{}
	if name != "" {
		options.GMSACredentialSpecName = &name
	}
	if contents != "" {
		options.GMSACredentialSpec = &contents
	}
	return options
}

func gmsaContainer(name string, options *corev1.WindowsSecurityContextOptions) corev1.Container {
	c := corev1.Container{Name: name, Image: "servercore"}
	if options != nil {
		c.SecurityContext = &corev1.SecurityContext{WindowsOptions: options}
	}
	return c
}

func windowsPod(options *corev1.WindowsSecurityContextOptions, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "iis-"}, Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}, Containers: []corev1.Container{gmsaContainer("iis", nil)}}}
	if options != nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: options}
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func withInit(options *corev1.WindowsSecurityContextOptions) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, gmsaContainer("check", options))
	}
}

func withContainer(options *corev1.WindowsSecurityContextOptions) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, gmsaContainer(fmt.Sprintf("c%d", len(pod.Spec.Containers)), options))
	}
}

func debugContainer(pod *corev1.Pod, name string, options *corev1.WindowsSecurityContextOptions) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(gmsaContainer(name, options))})
	return pod
}

// refusedWith is refused, with a code.
func refusedWith(t *testing.T, what string, err error, code int32, words ...string) {
	t.Helper()
	refused(t, what, err, words...)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code != code {
		t.Errorf("%s: code %d, want %d: %v", what, status.Status().Code, code, err)
	}
}

// warned are the warnings that a request brings.
type warned struct {
	sync.Mutex
	texts []string
}

func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warned) take() string {
	w.Lock()
	defer w.Unlock()
	all := strings.Join(w.texts, "\n")
	w.texts = nil
	return all
}

func (p plane) warnedClient(t *testing.T, config *rest.Config) (kubernetes.Interface, *warned) {
	t.Helper()
	heard := &warned{}
	config.WarningHandlerWithContext = heard
	client := need(kubernetes.NewForConfig(config))(t)
	return client, heard
}

// A pod gets what it names, in each place where it can name it, and keeps it whatever becomes of the object and of the right.
func TestPodsRunAsTheirAccounts(t *testing.T) {
	inTurn(t)
	namespace, spec := shared.credentialSpecs(t, "pod", "one", "check", "debug")
	pods := shared.client(t).CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), windowsPod(gmsaOf(spec("pod"), ""), withInit(gmsaOf(spec("check"), "")), withContainer(gmsaOf(spec("one"), credentialContents))), metav1.CreateOptions{})
	must(t, err)
	filled := func(where string, options *corev1.WindowsSecurityContextOptions, name string) {
		t.Helper()
		if options == nil || ptr.Deref(options.GMSACredentialSpec, "") != credentialContents || ptr.Deref(options.GMSACredentialSpecName, "") != spec(name) {
			t.Errorf("%s has %+v", where, options)
		}
	}
	filled("the pod", pod.Spec.SecurityContext.WindowsOptions, "pod")
	filled("the init container", pod.Spec.InitContainers[0].SecurityContext.WindowsOptions, "check")
	filled("the container", pod.Spec.Containers[1].SecurityContext.WindowsOptions, "one")
	if pod.Spec.Containers[0].SecurityContext != nil {
		t.Errorf("a container without one was given %+v", pod.Spec.Containers[0].SecurityContext)
	}
	pod = need(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "debug", gmsaOf(spec("debug"), "")), metav1.UpdateOptions{}))(t)
	filled("the ephemeral container", pod.Spec.EphemeralContainers[0].SecurityContext.WindowsOptions, "debug")

	explained := shared.must(t, "", "credence", "explain", "pod", pod.Name, "-n", namespace)
	expect(t, lacks(explained, "Windows accounts (gMSA): admitted", `CONTOSO\WebApplication1`, "container iis\n    spec      "+spec("pod"), "init container check\n    spec      "+spec("check")), "credence explain")
	// A pod without the right, or with other contents, is refused here too.
	shared.createSpec(t, namespace)
	for name, test := range map[string]struct {
		options *corev1.WindowsSecurityContextOptions
		code    int32
		says    string
	}{
		"contents without a name": {gmsaOf("", credentialContents), 422, "gmsaCredentialSpecName"},
		"no right":                {gmsaOf(namespace, ""), 403, `may not use GMSACredentialSpec "` + namespace + `"`},
		"no such object":          {gmsaOf("other", ""), 422, `spec.ephemeralContainers[1].securityContext.windowsOptions.gmsaCredentialSpecName: there is no GMSACredentialSpec "other"`},
		"other contents":          {gmsaOf(spec("debug"), "{}"), 422, "spec.ephemeralContainers[1].securityContext.windowsOptions.gmsaCredentialSpec is not what"},
	} {
		refusedWith(t, "ephemeral container: "+name, errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "more", test.options), metav1.UpdateOptions{})), test.code, test.says)
	}

	// The objects and the right go: the pod can be changed, looked into and deleted.
	shared.must(t, "", "kubectl", "delete", "gmsacredentialspec", spec("pod"), spec("check"), spec("one"), spec("debug"))
	roles := shared.client(t).RbacV1().RoleBindings(namespace)
	must(t, roles.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually(t, func() error {
		if _, err := pods.Create(t.Context(), windowsPod(gmsaOf(spec("pod"), "")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return errors.New("a new pod is still admitted")
		}
		return nil
	})
	if pod, err = pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("labelling: %v", err)
	}
	expect(t, errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "plain", nil), metav1.UpdateOptions{})), "looking into it")
	refusedWith(t, "a changed field", errOf(pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(`{"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpec":"{}"}}}}`), metav1.PatchOptions{})), 422, "Forbidden: pod updates may not change fields")
	expect(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}), "deleting")
}

// A faulty pod is refused when it is created, with the webhook and the policies as they are installed.
func TestAccountsThatAPodMayNotHave(t *testing.T) {
	inTurn(t)
	namespace, spec := shared.credentialSpecs(t, "mine", "again")
	other := namespace + "-other"
	shared.createSpec(t, other)
	pods := shared.client(t).CoreV1().Pods(namespace)
	long := strings.Repeat("a", 254)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		code int32
		says []string
	}{
		"no right":                     {windowsPod(gmsaOf(other, "")), 403, []string{`service account "default" of namespace "` + namespace + `" may not use GMSACredentialSpec "` + other + `"`}},
		"no right, for a container":    {windowsPod(nil, withContainer(gmsaOf(other, ""))), 403, []string{`may not use GMSACredentialSpec "` + other + `"`}},
		"no right, for an init":        {windowsPod(nil, withInit(gmsaOf(other, ""))), 403, []string{`may not use GMSACredentialSpec "` + other + `"`}},
		"no right to the second":       {windowsPod(gmsaOf(spec("mine"), ""), withContainer(gmsaOf(other, ""))), 403, []string{other}},
		"no right, contents known":     {windowsPod(gmsaOf(other, credentialContents)), 403, []string{other}},
		"contents alone":               {windowsPod(gmsaOf("", credentialContents)), 422, []string{"spec: securityContext.windowsOptions.gmsaCredentialSpec is set, and gmsaCredentialSpecName is not"}},
		"contents alone, for an init":  {windowsPod(nil, withInit(gmsaOf("", `{"evil":true}`))), 422, []string{"init container check"}},
		"name and contents apart":      {windowsPod(gmsaOf(spec("mine"), ""), withContainer(gmsaOf("", credentialContents))), 422, []string{"container c1"}},
		"no such object":               {windowsPod(gmsaOf(spec("none"), "")), 422, []string{"spec.securityContext.windowsOptions.gmsaCredentialSpecName", `there is no GMSACredentialSpec "` + spec("none") + `"`}},
		"other contents":               {windowsPod(gmsaOf(spec("mine"), `{"a":"b"}`)), 422, []string{"spec.securityContext.windowsOptions.gmsaCredentialSpec is not what", `{"a":"b"}`, "WebApplication1"}},
		"a key twice":                  {windowsPod(gmsaOf(spec("mine"), `{"CmsPlugins":["evil"],`+credentialContents[1:])), 422, []string{"CmsPlugins", "twice"}},
		"contents with something else": {windowsPod(gmsaOf(spec("mine"), credentialContents+"{}")), 422, []string{"data after the end"}},
		"contents in another case":     {windowsPod(gmsaOf(spec("mine"), strings.ToLower(credentialContents))), 422, []string{"is not what"}},
		"a name that is a path":        {windowsPod(gmsaOf("../../secrets/x", "")), 422, []string{"is not a valid name of a GMSACredentialSpec"}},
		"a name that is too long":      {windowsPod(gmsaOf(long, "")), 422, []string{"is not a valid name of a GMSACredentialSpec"}},
	} {
		refusedWith(t, name, errOf(pods.Create(t.Context(), test.pod, metav1.CreateOptions{})), test.code, test.says...)
	}
	// Programs find each reason by the path of its field.
	_, err := pods.Create(t.Context(), windowsPod(gmsaOf(other, ""), withContainer(gmsaOf(spec("none"), "")), withInit(gmsaOf(other, ""))), metav1.CreateOptions{})
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("a refusal without details: %v", err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	const at = "securityContext.windowsOptions.gmsaCredentialSpecName"
	if want := []string{"spec." + at, "spec.initContainers[0]." + at, "spec.containers[1]." + at}; !slices.Equal(fields, want) {
		t.Errorf("fields of the causes %q, want %q", fields, want)
	}
	// The faults of a pod without an account are reported by the API server.
	nothing := do(t, shared.config(t), "POST", "/api/v1/namespaces/"+namespace+"/pods", "application/json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{}}`)
	expect(t, nothing.is(422, "spec.containers: Required value"), "no containers")
	// A label of the namespace changes nothing.
	need(shared.client(t).CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(`{"metadata":{"labels":{"windows.k8s.io/disabled":"true","gmsa-webhook":"disabled"}}}`), metav1.PatchOptions{}))(t)
	refusedWith(t, "a namespace that wants out", errOf(pods.Create(t.Context(), windowsPod(gmsaOf(other, "")), metav1.CreateOptions{})), 403, other)
}

// Twenty-eight accounts can be checked by the policies, and no more are let through; however often each is named.
func TestManyAccountsOfOnePod(t *testing.T) {
	inTurn(t)
	var names []string
	for i := range 29 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	namespace, spec := shared.credentialSpecs(t, names...)
	pods := shared.client(t).CoreV1().Pods(namespace)
	pod := func(distinct, times int) *corev1.Pod {
		var changes []func(*corev1.Pod)
		for i := range distinct * times {
			changes = append(changes, withContainer(gmsaOf(spec(names[i%distinct]), "")))
		}
		return windowsPod(nil, changes...)
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, fine := range []struct{ distinct, times int }{{20, 5}, {28, 3}, {1, 200}} {
		if _, err := pods.Create(t.Context(), pod(fine.distinct, fine.times), dry); err != nil {
			t.Errorf("%d accounts, %d times: %v", fine.distinct, fine.times, err)
		}
	}
	refusedWith(t, "29 accounts", errOf(pods.Create(t.Context(), pod(29, 1), dry)), 422, "spec.containers[29].securityContext.windowsOptions.gmsaCredentialSpecName", "one too many: 28 different GMSACredentialSpecs")
	// The last one is checked as the first is.
	last := pod(27, 1)
	withContainer(gmsaOf(namespace, ""))(last)
	shared.createSpec(t, namespace)
	refusedWith(t, "the 28th, without a right", errOf(pods.Create(t.Context(), last, dry)), 403, `may not use GMSACredentialSpec "`+namespace+`"`)
	expect(t, errOf(pods.Create(t.Context(), pod(26, 4), dry)), "26 accounts in 104 places")
	refusedWith(t, "several accounts in 130 places", errOf(pods.Create(t.Context(), pod(2, 65), dry)), 422, "in more than 128 places")
}

// The longest names in the most places are not too much to check.
func TestLongNamesOfAccounts(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "default", Namespace: namespace},
		rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, Verbs: []string{"use"}})
	var changes []func(*corev1.Pod)
	long := strings.Repeat("a", 60)
	for i := range 128 {
		name := fmt.Sprintf("%s.%s.%s.%s-%03d", long, long, long, strings.Repeat("b", 253-3*61-4), i%28)
		if i < 28 {
			shared.createSpec(t, name)
		}
		changes = append(changes, withContainer(gmsaOf(name, "")))
	}
	eventually(t, func() error {
		return errOf(shared.client(t).CoreV1().Pods(namespace).Create(t.Context(), windowsPod(nil, changes...), dryRun))
	})
}

// Objects as clusters have them load unchanged; what can never work is refused, what rarely does is warned of.
func TestCredentialSpecsAreJudged(t *testing.T) {
	inTurn(t)
	name := shared.namespace(t)
	shared.must(t, credentialSpec("windows.k8s.io/v1alpha1", name), "kubectl", "create", "-f", "-")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "gmsacredentialspec", name) })
	host := `{"credspec":{"ActiveDirectoryConfig":{"HostAccountConfig":{"PortableCcgVersion":"1","PluginGUID":"{CCC2A336-D7F3-4818-A213-272B7924213E}","PluginInput":"ObjectId=a;SecretUri=b"}}}}`
	shared.must(t, "", "kubectl", "patch", "gmsacredentialspec", name, "--type", "merge", "-p", host)
	got := shared.must(t, "", "kubectl", "get", "gmsacredentialspecs.v1.windows.k8s.io", name, "-o", "jsonpath={.credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput} {.credspec.DomainJoinConfig.Sid}")
	if got != "ObjectId=a;SecretUri=b S-1-5-21-2126729477-2524075714-3094792973" {
		t.Errorf("it came back as %s", got)
	}
	if columns := shared.must(t, "", "kubectl", "get", "gmsacredentialspec", name); !strings.Contains(columns, "WebApplication1") || !strings.Contains(columns, "contoso.com") {
		t.Errorf("columns:\n%s", columns)
	}
	for what, test := range map[string]struct{ patch, says string }{
		"the SID of an account": {`{"credspec":{"DomainJoinConfig":{"Sid":"S-1-5-21-2126729477-2524075714-3094792973-1105"}}}`, "Warning: credspec.DomainJoinConfig.Sid"},
		"a $ at the end":        {`{"credspec":{"DomainJoinConfig":{"MachineAccountName":"WebApplication1$"}}}`, "Warning: credspec.DomainJoinConfig.MachineAccountName"},
		"half a host account":   {`{"credspec":{"ActiveDirectoryConfig":{"HostAccountConfig":{"PluginInput":null}}}}`, "Warning: credspec.ActiveDirectoryConfig.HostAccountConfig"},
	} {
		if _, stderr, code := shared.command(t, "", "kubectl", "patch", "gmsacredentialspec", name, "--type", "merge", "-p", test.patch, "--dry-run=server"); code != 0 || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: exit code %d, %s", what, code, stderr)
		}
	}
	for what, patch := range map[string]string{
		"no plugin": `{"credspec":{"CmsPlugins":[]}}`, "no SID": `{"credspec":{"DomainJoinConfig":{"Sid":"none"}}}`, "nothing": `{"credspec":null}`,
	} {
		if _, stderr, code := shared.command(t, "", "kubectl", "patch", "gmsacredentialspec", name, "--type", "merge", "-p", patch, "--dry-run=server"); code == 0 || !strings.Contains(stderr, "credspec") {
			t.Errorf("%s: exit code %d, %s", what, code, stderr)
		}
	}
	if _, stderr, code := shared.command(t, strings.Replace(credentialSpec("windows.k8s.io/v1", name+"-x"), `"Sid"`, `"sid"`, 1), "kubectl", "create", "-f", "-"); code == 0 || !strings.Contains(stderr, `unknown field "credspec.DomainJoinConfig.sid"`) {
		t.Errorf("a field in another case: exit code %d, %s", code, stderr)
	}
}

// The creator of a workload learns at once that its pods will be refused.
func TestTemplatesWithAccounts(t *testing.T) {
	inTurn(t)
	namespace, spec := shared.credentialSpecs(t, "mine")
	client, heard := shared.warnedClient(t, shared.config(t))
	deployment := func(options *corev1.WindowsSecurityContextOptions) *appsv1.Deployment {
		pod := windowsPod(options)
		labels := map[string]string{"app": "iis"}
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{GenerateName: "iis-"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}}}
	}
	for name, test := range map[string]struct {
		options *corev1.WindowsSecurityContextOptions
		says    string
	}{
		"fine": {gmsaOf(spec("mine"), ""), ""}, "no such object": {gmsaOf(spec("none"), ""), "pods of Deployment iis-"}, "contents alone": {gmsaOf("", "{}"), "gmsaCredentialSpecName is not"},
	} {
		expect(t, errOf(client.AppsV1().Deployments(namespace).Create(t.Context(), deployment(test.options), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})), name)
		if got := heard.take(); test.says == "" && got != "" || !strings.Contains(got, test.says) {
			t.Errorf("%s: warned of %q, want %q", name, got, test.says)
		}
	}
}

// Another webhook may add a container with an account, which is filled in and authorized as any other: where it comes before, and
// where it comes after and the pod has an account already. Otherwise the pod is refused; it never runs without.
func TestAccountsThatAnotherWebhookAdds(t *testing.T) {
	inTurn(t)
	namespace, spec := shared.credentialSpecs(t, "mine")
	other := namespace + "-other"
	shared.createSpec(t, other)
	for _, test := range []struct{ configuration, annotation string }{{"an-" + namespace, "before"}, {"zzz-" + namespace, "after"}} {
		addSidecars(t, namespace, test.configuration, test.annotation)
	}
	create := func(when, own, added string) (*corev1.Pod, error) {
		return shared.client(t).CoreV1().Pods(namespace).Create(t.Context(), windowsPod(gmsaOf(own, ""), func(pod *corev1.Pod) { pod.Annotations = map[string]string{when: added} }), dryRun)
	}
	for _, test := range []struct{ when, own string }{{"before", ""}, {"before", spec("mine")}, {"after", spec("mine")}} {
		var pod *corev1.Pod
		eventually(t, func() (err error) {
			if pod, err = create(test.when, test.own, spec("mine")); err == nil && len(pod.Spec.Containers) != 2 {
				err = errors.New("the other webhook is not called yet")
			}
			return err
		})
		if context := pod.Spec.Containers[1].SecurityContext; context == nil || ptr.Deref(context.WindowsOptions.GMSACredentialSpec, "") != credentialContents {
			t.Errorf("%s, own %q: the sidecar has %+v", test.when, test.own, context)
		}
	}
	refusedWith(t, "a sidecar with an account that the pod may not have", errOf(create("before", "", other)), 403, other)
	refusedWith(t, "a sidecar that comes too late", errOf(create("after", "", spec("mine"))), 422, "container sidecar", "was not filled in")
}

// addSidecars installs a webhook that adds a container with the account that an annotation names.
func addSidecars(t *testing.T, namespace, configuration, annotation string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(w, "no review of a pod", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if name := pod.Annotations[annotation]; name != "" && len(pod.Spec.Containers) == 1 {
			patch, _ := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec/containers/-", "value": gmsaContainer("sidecar", gmsaOf(name, ""))}})
			review.Response.Patch, review.Response.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	webhooks := shared.client(t).AdmissionregistrationV1().MutatingWebhookConfigurations()
	need(webhooks.Create(t.Context(), &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name:         annotation + ".example.com",
			ClientConfig: registrationv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(t.Context()), configuration, metav1.DeleteOptions{}) })
}
