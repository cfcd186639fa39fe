package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	podNameKey        = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
	podContentsKey    = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
	containerNameKey  = "iis.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
	containerContents = "iis.container.alpha.windows.kubernetes.io/gmsa-credential-spec"
)

func gmsaAnnotations(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			pod.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// Webhook and policies each check the right on their own: what one refuses does not depend on the other. Contents are compared by the webhook alone.
func TestPlaneAccountsWithOneOfTheGuards(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--arg", "webhook=--feature-gates=WindowsGMSAAnnotations=true", "--arg", "webhook=--gmsa-require-user", "--arg", "webhook=--gmsa-random-hostname")
	namespace, spec := p.credentialSpecs(t, "mine", "second")
	other := namespace + "-other"
	p.createSpec(t, other)
	root := p.client(t)
	pods := root.CoreV1().Pods(namespace)
	create := func(pod *corev1.Pod) error { return errOf(pods.Create(t.Context(), pod, dryRun)) }

	bindings := root.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	taken := need(bindings.Get(t.Context(), "credence-gmsa", metav1.GetOptions{}))(t)
	must(t, bindings.Delete(t.Context(), taken.Name, metav1.DeleteOptions{}))
	eventually(t, func() error {
		if err := create(windowsPod(gmsaOf(other, credentialContents))); err == nil || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("the policy still decides: %w", err)
		}
		return nil
	})
	t.Run("webhook", func(t *testing.T) { accountsByWebhook(t, p, namespace, other, spec) })
	t.Run("annotations", func(t *testing.T) { accountsByAnnotations(t, p, namespace, other, spec) })
	t.Run("user", func(t *testing.T) { accountsOfUsers(t, p, namespace, other, spec) })

	taken.ResourceVersion, taken.UID = "", ""
	need(bindings.Create(t.Context(), taken, metav1.CreateOptions{}))(t)
	t.Run("revisions", func(t *testing.T) { accountsOfRevisions(t, p) })
	t.Run("webhook that does not answer", func(t *testing.T) {
		signalWebhook(t, p, syscall.SIGSTOP)
		defer signalWebhook(t, p, syscall.SIGCONT)
		expect(t, create(windowsPod(nil)), "a pod without an account")
		refused(t, "a pod with one", create(windowsPod(gmsaOf(spec("mine"), ""))), "expander.gmsa.credence.dev")
	})
	mutating, validating := root.AdmissionregistrationV1().MutatingWebhookConfigurations(), root.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	must(t, errors.Join(mutating.Delete(t.Context(), "zz-credence-gmsa", metav1.DeleteOptions{}), validating.Delete(t.Context(), "credence-gmsa", metav1.DeleteOptions{})))
	eventually(t, func() error { return create(windowsPod(gmsaOf(spec("mine"), credentialContents))) })
	eventually(t, func() error {
		if err := create(windowsPod(gmsaOf(spec("mine"), ""))); err == nil || !strings.Contains(err.Error(), "was not filled in") {
			return fmt.Errorf("the webhook still decides: %w", err)
		}
		return nil
	})
	eventually(t, func() error {
		if err := create(windowsPod(gmsaOf(other, credentialContents))); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'credence-gmsa'") {
			return fmt.Errorf("the policy does not decide yet: %w", err)
		}
		return nil
	})
	t.Run("policies", func(t *testing.T) {
		for name, test := range map[string]struct {
			pod  *corev1.Pod
			code int32
			says string
		}{
			"no right":              {windowsPod(gmsaOf(other, credentialContents)), 403, "may not use GMSACredentialSpec " + other},
			"no right to another":   {windowsPod(gmsaOf(spec("mine"), credentialContents), withInit(gmsaOf(spec("mine"), credentialContents)), withContainer(gmsaOf(other, credentialContents))), 403, other},
			"no right, for an init": {windowsPod(nil, withInit(gmsaOf(other, credentialContents))), 403, other},
			"contents alone":        {windowsPod(nil, withContainer(gmsaOf("", credentialContents))), 422, "container c1"},
			"not filled in":         {windowsPod(gmsaOf(spec("mine"), "")), 422, "was not filled in"},
		} {
			refusedWith(t, name, create(test.pod), test.code, test.says, "ValidatingAdmissionPolicy 'credence-gmsa")
		}
		pod := need(pods.Create(t.Context(), windowsPod(gmsaOf(spec("mine"), credentialContents)), metav1.CreateOptions{}))(t)
		for name, options := range map[string]*corev1.WindowsSecurityContextOptions{
			"may not use GMSACredentialSpec " + other: gmsaOf(other, credentialContents), "ephemeral container debug": gmsaOf("", credentialContents), "was not filled in": gmsaOf(spec("mine"), ""),
		} {
			refused(t, "an ephemeral container", errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "debug", options), metav1.UpdateOptions{})), name)
		}
		expect(t, errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "debug", gmsaOf(spec("second"), credentialContents)), metav1.UpdateOptions{})), "an ephemeral container with an account that it may have")
	})
}

func signalWebhook(t *testing.T, p plane, signal syscall.Signal) {
	t.Helper()
	now := need(readPlane(p.Dir))(t)
	at := slices.IndexFunc(now.Components, func(c component) bool { return c.Name == "webhook" })
	if at < 0 {
		t.Fatal("the webhook does not run")
	}
	must(t, syscall.Kill(now.Components[at].PID, signal))
	if signal == syscall.SIGSTOP {
		stopped(t, now.Components[at].PID)
	}
}

// stopped waits until no thread of a process runs: one thread takes the signal, and the others go on until it does.
func stopped(t *testing.T, pid int) {
	t.Helper()
	eventually(t, func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			return fmt.Errorf("threads of process %d: %v", pid, err)
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil {
				return err
			}
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return fmt.Errorf("a thread of process %d has the state %.1s", pid, state)
			}
		}
		return nil
	})
}

func accountsByWebhook(t *testing.T, p plane, namespace, other string, spec func(string) string) {
	pods := p.client(t).CoreV1().Pods(namespace)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		code int32
		says []string
	}{
		"no right":                    {windowsPod(gmsaOf(other, "")), 403, []string{`spec.securityContext.windowsOptions.gmsaCredentialSpecName: service account "default" of namespace "` + namespace + `" may not use GMSACredentialSpec "` + other + `"`}},
		"no right, and other content": {windowsPod(gmsaOf(other, `{"a":"b"}`)), 403, []string{other}},
		"no right, for an init":       {windowsPod(nil, withInit(gmsaOf(other, ""))), 403, []string{"spec.initContainers[0].securityContext.windowsOptions.gmsaCredentialSpecName"}},
		"contents alone":              {windowsPod(nil, withInit(gmsaOf("", "{}"))), 422, []string{"spec.initContainers[0].securityContext.windowsOptions.gmsaCredentialSpec is set"}},
	} {
		_, err := pods.Create(t.Context(), test.pod, dryRun)
		refusedWith(t, name, err, test.code, append(test.says, ".gmsa.credence.dev")...)
		if err != nil && test.code == 403 && strings.Contains(err.Error(), "WebApplication1") {
			t.Errorf("%s: the refusal shows what is in it: %v", name, err)
		}
	}
	pod := need(pods.Create(t.Context(), windowsPod(gmsaOf(spec("mine"), "")), metav1.CreateOptions{}))(t)
	if len(pod.Spec.Hostname) != 15 {
		t.Errorf("host name %q", pod.Spec.Hostname)
	}
	refusedWith(t, "an ephemeral container", errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "debug", gmsaOf(other, "")), metav1.UpdateOptions{})), 403, "spec.ephemeralContainers[0]", other)
}

func accountsByAnnotations(t *testing.T, p plane, namespace, other string, spec func(string) string) {
	pods := p.client(t).CoreV1().Pods(namespace)
	pod := need(pods.Create(t.Context(), windowsPod(nil, gmsaAnnotations(podNameKey, spec("mine"), containerNameKey, spec("second"), containerContents, "")), metav1.CreateOptions{}))(t)
	if pod.Annotations[podContentsKey] != credentialContents || pod.Annotations[containerContents] != credentialContents {
		t.Errorf("annotations %v", pod.Annotations)
	}
	for name, test := range map[string]struct {
		pairs []string
		code  int32
		says  string
	}{
		"no right":        {[]string{podNameKey, other}, 403, other},
		"contents alone":  {[]string{containerContents, "{}"}, 422, "metadata.annotations[" + containerContents + "] is set"},
		"other contents":  {[]string{podNameKey, spec("mine"), podContentsKey, "{}"}, 422, "is not what"},
		"no such object":  {[]string{containerNameKey, spec("none")}, 422, "there is no GMSACredentialSpec"},
		"of no container": {[]string{"later" + strings.TrimPrefix(containerNameKey, "iis"), other}, 403, other},
	} {
		refusedWith(t, name, errOf(pods.Create(t.Context(), windowsPod(nil, gmsaAnnotations(test.pairs...)), dryRun)), test.code, test.says)
	}
	for what, patch := range map[string]string{
		"can't be changed": `{"metadata":{"annotations":{"` + podContentsKey + `":"{}"}}}`,
		"can't be removed": `{"metadata":{"annotations":{"` + containerNameKey + `":null}}}`,
		"can't be added":   `{"metadata":{"annotations":{"x` + containerNameKey + `":"y"}}}`,
	} {
		for _, subresource := range []string{"", "status"} {
			var at []string
			if subresource != "" {
				at = []string{subresource}
			}
			refusedWith(t, what+" by pods/"+subresource, errOf(pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, at...)), 400, what)
		}
	}
	refusedWith(t, "an annotation that comes by a binding", pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Annotations: map[string]string{"x" + containerNameKey: "y"}}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{}), 400, "can't be added")
	expect(t, errOf(pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"x"}}}`), metav1.PatchOptions{})), "another annotation")
}

// With --gmsa-require-user no user borrows an account through a service account that may use it: not by a pod, not by a workload,
// and not by naming a controller as its maker.
func accountsOfUsers(t *testing.T, p plane, namespace, other string, spec func(string) string) {
	everything := rbacv1.PolicyRule{APIGroups: []string{"", "apps", "batch"}, Verbs: []string{"*"},
		Resources: []string{"pods", "pods/ephemeralcontainers", "deployments", "replicasets", "replicasets/scale", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers"}}
	use := rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{spec("mine")}, Verbs: []string{"use"}}
	for _, name := range []string{"jane", "joe"} {
		p.grant(t, namespace, user(name), everything)
	}
	p.grant(t, namespace, user("joe"), use)
	jane, joe := p.clientAs(t, "jane"), p.clientAs(t, "joe")
	pod := windowsPod(gmsaOf(spec("mine"), ""))
	owned := pod.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)}}
	eventually(t, func() error { return errOf(joe.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)) })
	eventually(t, func() error { return errOf(jane.CoreV1().Pods(namespace).Create(t.Context(), windowsPod(nil), dryRun)) })
	for what, pod := range map[string]*corev1.Pod{"a pod": pod, "a pod with an owner": owned} {
		refusedWith(t, what, errOf(jane.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)), 403, `user "jane" may not use GMSACredentialSpec "`+spec("mine")+`"`)
	}
	for _, w := range workloads {
		spec, path := pod.Spec, "spec.template.spec.securityContext"
		switch w.resource {
		case "pods", "podtemplates":
			continue
		case "cronjobs":
			path = "spec.jobTemplate." + path
			fallthrough
		case "jobs":
			spec.RestartPolicy = corev1.RestartPolicyNever
		}
		got := do(t, p.as(t, "jane"), "POST", pathOf(namespace, w.resource)+"?dryRun=All", jsonBody, w.before+asJSON(t, spec)+w.after)
		expect(t, got.is(403, `user \"jane\"`, path), w.resource)
	}
	replicas := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "iis", OwnerReferences: owned.OwnerReferences}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "iis"}}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "iis"}}, Spec: pod.Spec}}}
	_, err := jane.AppsV1().ReplicaSets(namespace).Create(t.Context(), replicas, metav1.CreateOptions{})
	refusedWith(t, "a workload that names an owner", err, 403, `user "jane"`)
	plain := replicas.DeepCopy()
	plain.Name, plain.OwnerReferences, plain.Spec.Replicas, plain.Spec.Template.Spec = "plain", nil, ptr.To[int32](0), windowsPod(nil).Spec
	need(jane.AppsV1().ReplicaSets(namespace).Create(t.Context(), plain, metav1.CreateOptions{}))(t)
	need(jane.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "plain"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "plain"}}, Spec: windowsPod(nil).Spec}}}, metav1.CreateOptions{}))(t)
	replicas.OwnerReferences = nil
	need(joe.AppsV1().ReplicaSets(namespace).Create(t.Context(), replicas, metav1.CreateOptions{}))(t)
	eventually(t, func() error {
		list, err := joe.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=iis"})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("the controller has made %d pods; Events %q", len(list.Items), p.warnings(t, namespace))
		}
		return err
	})
	refusedWith(t, "another image for that account", errOf(jane.AppsV1().ReplicaSets(namespace).Patch(t.Context(), "iis", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"iis","image":"janes"}]}}}}`), metav1.PatchOptions{})), 403, `user "jane"`)
	expect(t, errOf(jane.AppsV1().ReplicaSets(namespace).Patch(t.Context(), "iis", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})), "what does not touch the template")
	for _, subresource := range [][]string{nil, {"scale"}} {
		grow := func(client kubernetes.Interface, name string) error {
			return errOf(client.AppsV1().ReplicaSets(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresource...))
		}
		refusedWith(t, fmt.Sprintf("an old template that grows, by %q", subresource), grow(jane, "iis"), 403, `user "jane"`)
		expect(t, grow(joe, "iis"), "the same by a user with the right")
		expect(t, grow(jane, "plain"), "one without an account that grows")
	}
	rollback := []byte(`{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"1"}}}`)
	refusedWith(t, "a rollback by annotation", errOf(jane.AppsV1().Deployments(namespace).Patch(t.Context(), "plain", types.MergePatchType, rollback, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})), 403, "user jane may not use all of them")
	running := need(joe.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}))(t)
	refusedWith(t, "another image for a pod that runs", errOf(jane.CoreV1().Pods(namespace).Patch(t.Context(), running.Name, types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"iis","image":"janes"}]}}`), metav1.PatchOptions{})), 403, `user "jane"`)
	if _, err = jane.CoreV1().Pods(namespace).Patch(t.Context(), running.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a label for a pod that runs: %v", err)
	}
	running = need(joe.CoreV1().Pods(namespace).Get(t.Context(), running.Name, metav1.GetOptions{}))(t)
	refusedWith(t, "a container that would run as the pod does", errOf(jane.CoreV1().Pods(namespace).UpdateEphemeralContainers(t.Context(), running.Name, debugContainer(running, "debug", nil), metav1.UpdateOptions{})), 403, `user "jane"`)
}

// A StatefulSet makes pods of its ControllerRevisions too: a user who writes one writes a template.
func accountsOfRevisions(t *testing.T, p plane) {
	namespace, spec := p.credentialSpecs(t, "mine")
	p.grant(t, namespace, user("jill"), rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "statefulsets", "controllerrevisions"}, Verbs: []string{"*"}})
	jill := p.clientAs(t, "jill")
	labels := map[string]string{"app": "s"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](1), ServiceName: "s", Selector: &metav1.LabelSelector{MatchLabels: labels},
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](5)}},
		Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: windowsPod(nil).Spec},
	}}
	eventually(t, func() error {
		return errOf(jill.AppsV1().StatefulSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}))
	})
	eventually(t, func() error { return errOf(jill.CoreV1().Pods(namespace).Get(t.Context(), "s-0", metav1.GetOptions{})) })
	need(jill.AppsV1().StatefulSets(namespace).Patch(t.Context(), "s", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"second"}]`), metav1.PatchOptions{}))(t)
	eventually(t, func() (err error) { // the status is written after the pod
		if set, err = jill.AppsV1().StatefulSets(namespace).Get(t.Context(), "s", metav1.GetOptions{}); err == nil && set.Status.CurrentRevision == "" {
			err = errors.New("the StatefulSet has no revision yet")
		}
		return err
	})
	revisions := jill.AppsV1().ControllerRevisions(namespace)
	revision := need(revisions.Get(t.Context(), set.Status.CurrentRevision, metav1.GetOptions{}))(t)
	mine := need(json.Marshal(gmsaOf(spec("mine"), "")))(t)
	revision.ResourceVersion, revision.UID = "", ""
	revision.Data = runtime.RawExtension{Raw: []byte(strings.Replace(string(revision.Data.Raw), `"securityContext":{}`, `"securityContext":{"windowsOptions":`+string(mine)+`}`, 1))}
	if !strings.Contains(string(revision.Data.Raw), spec("mine")) {
		t.Fatalf("the test does not change %s", revision.Data.Raw)
	}
	must(t, revisions.Delete(t.Context(), revision.Name, metav1.DeleteOptions{}))
	refusedWith(t, "a revision with an account", errOf(revisions.Create(t.Context(), revision, metav1.CreateOptions{})), 403, `user "jill"`, "data.spec.template.spec.securityContext")
	// Merged into a template that has an account, another image is enough.
	revision.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"iis","image":"jills"}]}}}}`)}
	refusedWith(t, "a part of a template", errOf(revisions.Create(t.Context(), revision, metav1.CreateOptions{})), 403, "user jill may not use all of them")
}
