package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// again stops a plane, and starts it with other arguments.
func (p plane) again(t *testing.T, args ...string) {
	t.Helper()
	down(t, p.Dir)
	up(t, append([]string{"--dir", p.Dir}, args...)...)
}

// The objects of a flag are installed with it, and removed with it; without --gmsa-require-user a webhook that is down stops nothing that
// it would never refuse; and a cluster without the webhook can have policies in its place.
func TestPlaneOptionsOfAccounts(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--arg", "webhook=--gmsa-require-user", "--arg", "webhook=--feature-gates=WindowsGMSAAnnotations=true", "--arg", "webhook=--client-ca-file=", "--arg", "webhook=--client-name=", "--arg", "webhook=--review-path-period=20s")
	configurations := func() []string {
		return strings.Fields(p.must(t, "", "kubectl", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,validatingadmissionpolicies", "-o", "name"))
	}
	optional := []string{"credence-gmsa-require-user", "zz-credence-gmsa-annotations", "credence-gmsa-annotations", "credence:webhook:review-paths", "credence-review-paths", "credence:webhook:workloads"}
	has := func(name string) bool {
		return slices.ContainsFunc(configurations(), func(found string) bool { return strings.HasSuffix(found, "/"+name) })
	}
	for _, name := range optional {
		if !has(name) {
			t.Errorf("%s was not installed", name)
		}
	}
	t.Run("secret paths", func(t *testing.T) { reviewsAtSecretPaths(t, p) })
	p.must(t, "", "kubectl", "create", "clusterrole", "somebodys", "--verb=get", "--resource=pods")
	p.again(t)
	for _, name := range optional {
		if has(name) {
			t.Errorf("%s is still there", name)
		}
	}
	if !has("somebodys") || !has("zz-credence-gmsa") {
		t.Error("more was taken away than belongs to flags")
	}
	namespace, spec := p.credentialSpecs(t, "mine")
	p.again(t, "--arg", "webhook=--gmsa-enforcement=Warn")
	t.Run("Warn", func(t *testing.T) { refusalsThatAreReported(t, p, namespace, spec("mine")) })
	p.again(t)
	t.Run("webhook that is down", func(t *testing.T) { whatAWebhookThatIsDownAllows(t, p, namespace, spec("mine")) })
	t.Run("no webhook", func(t *testing.T) { accountsWithoutTheWebhook(t, p, namespace, spec("mine")) })
}

func whatAWebhookThatIsDownAllows(t *testing.T, p plane, namespace, spec string) {
	pods := p.client(t).CoreV1().Pods(namespace)
	running := need(pods.Create(t.Context(), windowsPod(gmsaOf(spec, "")), metav1.CreateOptions{}))(t)
	signalWebhook(t, p, syscall.SIGSTOP)
	defer signalWebhook(t, p, syscall.SIGCONT)
	labels := map[string]string{"app": "iis"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "iis"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: windowsPod(gmsaOf(spec, "")).Spec}}}
	expect(t, errOf(p.client(t).AppsV1().Deployments(namespace).Create(t.Context(), deployment, dryRun)), "a Deployment")
	expect(t, errOf(pods.Patch(t.Context(), running.Name, types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"iis","image":"next"}]}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})), "another image")
	expect(t, errOf(pods.UpdateEphemeralContainers(t.Context(), running.Name, debugContainer(running, "debug", nil), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})), "a debug container")
	eventually(t, func() error { // the API server learns by a watch that the webhook is enforced again
		_, err := pods.UpdateEphemeralContainers(t.Context(), running.Name, debugContainer(running, "debug", gmsaOf(spec, "")), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("a debug container with an account was let through")
		}
		refused(t, "a debug container with an account", err, "failed calling webhook")
		return nil
	})
}

func accountsWithoutTheWebhook(t *testing.T, p plane, namespace, spec string) {
	p.must(t, "", "kubectl", "delete", "mutatingwebhookconfiguration/zz-credence-gmsa", "validatingwebhookconfiguration/credence-gmsa")
	pods := p.client(t).CoreV1().Pods(namespace)
	create := func(pod *corev1.Pod) (*corev1.Pod, error) { return pods.Create(t.Context(), pod, dryRun) }
	// The policies of 62-gmsa-guards.yaml alone do not compare contents.
	eventually(t, func() error { return errOf(create(windowsPod(gmsaOf(spec, `{"made":"up"}`)))) })
	p.must(t, "", "kubectl", "apply", "--server-side", "-f", "../../deploy/options/gmsa-without-webhook.yaml")
	eventually(t, func() error {
		if _, err := create(windowsPod(gmsaOf(spec, `{"made":"up"}`))); err == nil {
			return errors.New("contents are not compared yet")
		}
		return errOf(create(windowsPod(gmsaOf(spec, ""))))
	})
	pod := need(pods.Create(t.Context(), windowsPod(gmsaOf(spec, ""), withInit(gmsaOf(spec, "")), withContainer(gmsaOf(spec, credentialContents)), withContainer(gmsaOf(spec, ""))), metav1.CreateOptions{}))(t)
	pod = need(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "debug", gmsaOf(spec, "")), metav1.UpdateOptions{}))(t)
	for place, options := range map[string]*corev1.WindowsSecurityContextOptions{
		"the pod": pod.Spec.SecurityContext.WindowsOptions, "an init container": pod.Spec.InitContainers[0].SecurityContext.WindowsOptions,
		"a container": pod.Spec.Containers[1].SecurityContext.WindowsOptions, "another": pod.Spec.Containers[2].SecurityContext.WindowsOptions,
		"an ephemeral container": pod.Spec.EphemeralContainers[0].SecurityContext.WindowsOptions,
	} {
		if got := ptr.Deref(options.GMSACredentialSpec, ""); got != credentialContents {
			t.Errorf("%s has %s", place, got)
		}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		code int32
		says string
	}{
		"other contents":             {windowsPod(gmsaOf(spec, `{"made":"up"}`)), 422, "is not what GMSACredentialSpec " + spec},
		"other contents, in an init": {windowsPod(gmsaOf(spec, ""), withInit(gmsaOf(spec, "{}"))), 422, "is not what GMSACredentialSpec " + spec},
		"no such object":             {windowsPod(gmsaOf("none", "")), 403, "may not use GMSACredentialSpec none"},
		"contents without a name":    {windowsPod(gmsaOf("", "{}")), 422, "gmsaCredentialSpecName is not"},
	} {
		refusedWith(t, name, errOf(create(test.pod)), test.code, test.says, "ValidatingAdmissionPolicy")
	}
	refusedWith(t, "an ephemeral container", errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "more", gmsaOf(spec, "{}")), metav1.UpdateOptions{})), 422, "is not what GMSACredentialSpec "+spec)

	// Texts are those of the object, whatever is in them.
	const odd = `a "quoted\" \\ <&> ü`
	p.must(t, `{"credspec":{"ActiveDirectoryConfig":{"HostAccountConfig":{"PortableCcgVersion":"1","PluginGUID":"{CCC2A336-D7F3-4818-A213-272B7924213E}","PluginInput":`+fmt.Sprintf("%q", odd)+`}}}}`,
		"kubectl", "patch", "gmsacredentialspec", spec, "--type", "merge", "--patch-file", "/dev/stdin")
	eventually(t, func() error {
		pod, err := create(windowsPod(gmsaOf(spec, "")))
		if err != nil {
			return err
		}
		want := strings.Replace(credentialContents, `"contoso.com"}]}`, `"contoso.com"}],"HostAccountConfig":{"PluginGUID":"{CCC2A336-D7F3-4818-A213-272B7924213E}","PluginInput":`+fmt.Sprintf("%q", odd)+`,"PortableCcgVersion":"1"}}`, 1)
		if got := *pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpec; got != want {
			return fmt.Errorf("filled in is %s, want %s", got, want)
		}
		return nil
	})
	expect(t, errOf(create(windowsPod(nil))), "a pod without an account")

	// An object that is of no use any more keeps no debug container from its pods, unless that names the object, too.
	p.must(t, `{"credspec":{"ActiveDirectoryConfig":{"HostAccountConfig":{"PluginInput":"a\ttab"}}}}`, "kubectl", "patch", "gmsacredentialspec", spec, "--type", "merge", "--patch-file", "/dev/stdin")
	debugged := func(options *corev1.WindowsSecurityContextOptions) error {
		return errOf(pods.UpdateEphemeralContainers(t.Context(), pod.Name, debugContainer(pod, "more", options), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	eventually(t, func() error {
		// The reason is that of one of two policies: control characters, or that it was not filled in.
		if err := debugged(gmsaOf(spec, "")); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a debug container that names an object of no use: %w", err)
		}
		return nil
	})
	allowed(t, "a debug container without an account", debugged(nil))
	p.must(t, "", "kubectl", "delete", "gmsacredentialspecs", "--all")
	eventually(t, func() error {
		_, err := create(windowsPod(gmsaOf(spec, "")))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "was not filled in") {
			return fmt.Errorf("without any object: %w", err)
		}
		return errOf(create(windowsPod(nil)))
	})
}

// In a staged installation a pod that would be refused is admitted with a warning: by the webhook and by the policies, in turn.
func refusalsThatAreReported(t *testing.T, p plane, namespace, spec string) {
	client, heard := p.warnedClient(t, p.config(t))
	pods := client.CoreV1().Pods(namespace)
	create := func(what string, pod *corev1.Pod, says ...string) {
		t.Helper()
		eventually(t, func() error { // the API server learns of what was applied by watches
			heard.take()
			if _, err := pods.Create(t.Context(), pod, dryRun); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			got := heard.take()
			for _, want := range says {
				if !strings.Contains(got, want) {
					return fmt.Errorf("%s: warned of %q, want %q in it", what, got, want)
				}
			}
			if len(says) == 0 && got != "" {
				return fmt.Errorf("%s: warned of %q", what, got)
			}
			return nil
		})
	}
	create("fine", windowsPod(gmsaOf(spec, "")))
	create("no such object", windowsPod(gmsaOf("none", "")), `would be refused: spec.securityContext.windowsOptions.gmsaCredentialSpecName: there is no GMSACredentialSpec "none"`, "ValidatingAdmissionPolicy 'credence-gmsa'")
	create("contents without a name", windowsPod(gmsaOf("", "{}")), "would be refused: ", "ValidatingAdmissionPolicy 'credence-gmsa'")
	if _, stderr, code := p.command(t, "", "kubectl", "patch", "gmsacredentialspec", spec, "--type", "merge", "-p", `{"credspec":{"CmsPlugins":[]}}`, "--dry-run=server"); code != 0 || !strings.Contains(stderr, "would be refused: credspec.CmsPlugins") {
		t.Errorf("an object that can never work: exit code %d, %s", code, stderr)
	}
	signalWebhook(t, p, syscall.SIGSTOP)
	defer signalWebhook(t, p, syscall.SIGCONT)
	eventually(t, func() error {
		return errOf(pods.Create(t.Context(), windowsPod(gmsaOf(spec, credentialContents)), dryRun))
	})
}
