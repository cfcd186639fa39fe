package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/test/controlplane"
)

const issuer = "https://credence-discovery.credence-system.svc"

// installation is the chart on a real node.
type installation struct {
	*images
	cluster    *controlplane.ControlPlane
	client     kubernetes.Interface
	identities dynamic.ResourceInterface // of the namespace default
	kubeconfig string
	folder     string // of the cluster
	chart      string
}

// withNode starts a cluster with a node that can pull the images of the commit, and no Credence yet. Where no node can run, the test is skipped.
func withNode(t *testing.T, arguments ...string) *installation {
	t.Helper()
	nodeOrSkip(t)
	return installation{images: imagesOfTheCommit(t), chart: packaged(t)}.inCluster(t, arguments...)
}

func nodeOrSkip(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), controlplane.Program("credence-devcluster"), "check-node", "--dir", t.TempDir()).CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
}

// inCluster returns the same in a new cluster.
func (i installation) inCluster(t *testing.T, arguments ...string) *installation {
	t.Helper()
	i.folder = t.TempDir()
	i.kubeconfig = filepath.Join(i.folder, "admin.kubeconfig")
	var err error
	arguments = append([]string{"--port", "0", "--node", "--apiserver-arg=--admission-control-config-file=" + i.admissionConfiguration(t)}, arguments...)
	if i.cluster, err = controlplane.Start(t.Context(), i.folder, arguments...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.cluster.Stop)
	i.client = kubernetes.NewForConfigOrDie(i.cluster.Admin)
	i.identities = dynamic.NewForConfigOrDie(i.cluster.Admin).Resource(workloadIdentities).Namespace("default")
	return &i
}

// admissionConfiguration writes files by which kube-apiserver can show the webhook a certificate, as docs/howto/harden.md has them, and limits priorities.
// It returns the first.
func (i *installation) admissionConfiguration(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "webhooks.kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "users": [{"name": "credence-webhook.credence-system.svc", "user": {
			"client-certificate": "%[1]s/pki/apiserver-kubelet-client.crt", "client-key": "%[1]s/pki/apiserver-kubelet-client.key"}}]}`, i.folder), 0o600); err != nil {
		t.Fatal(err)
	}
	webhooks := fmt.Sprintf(`{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": %q}`, kubeconfig)
	return admissionFile(t, limitedPriorities, `{"name": "MutatingAdmissionWebhook", "configuration": `+webhooks+`}`, `{"name": "ValidatingAdmissionWebhook", "configuration": `+webhooks+`}`)
}

// limitedPriorities is a plugin of admission that refuses pods of system priorities in namespaces without a quota for them, as GKE does.
const limitedPriorities = `{"name": "ResourceQuota", "configuration": {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [
	{"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical", "system-cluster-critical"]}]}]}}`

// admissionFile writes the configuration of plugins of admission.
func admissionFile(t *testing.T, plugins ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [%s]}`, strings.Join(plugins, ", ")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tryHelm installs or upgrades to images with a tag, and waits until all pods are ready.
func (i *installation) tryHelm(t *testing.T, verb, tag, timeout string) (stdout, stderr string, err error) {
	t.Helper()
	values := append(i.values(tag), "issuer="+issuer, "components.certificates.extraArgs={--overlap="+overlap.String()+"}")
	return helm(t, i.kubeconfig, with([]string{verb, "credence", i.chart, "--namespace", "credence-system", "--wait", "--timeout", timeout}, values...)...)
}

func (i *installation) helm(t *testing.T, verb, tag string) (printed string) {
	t.Helper()
	stdout, stderr, err := i.tryHelm(t, verb, tag, "10m")
	if err != nil {
		t.Fatalf("%v\n%s%s\n%s", err, stdout, stderr, state(t, i.client, system))
	}
	return stdout
}

// The chart on a real node, from the images: all pods run under the Pod Security Standard "restricted", the commands that Helm prints work,
// helm test issues a token and verifies it, a pod gets its identity, all of it goes on while parts are replaced or lost, and uninstalling leaves a cluster that
// works, with the identity and the keys, also if our processes are gone before, or the namespace.
func TestInstallOnANode(t *testing.T) {
	i := withNode(t, "--restart-apiserver", "--apiserver-arg=--audit-log-maxbackup=0") // all audit logs stay, which renewals are counted in
	makeNamespace(t, i.client, system, underRestricted)
	i.imageIsMissing(t)
	for _, line := range commandsOfNotes(t, i.helm(t, "upgrade", i.tag)) {
		command := exec.CommandContext(t.Context(), "bash", "-c", line)
		command.Env = append(os.Environ(), "PATH="+filepath.Dir(controlplane.Program("helm"))+":"+os.Getenv("PATH"), "KUBECONFIG="+i.kubeconfig, "HOME="+t.TempDir())
		// That clouds can't reach this issuer, credence doctor reports as 1.
		if output, err := command.CombinedOutput(); err != nil && !(line == "credence doctor" && command.ProcessState.ExitCode() == 1) {
			t.Errorf("%s: %v\n%s\n%s", line, err, output, state(t, i.client, system))
		}
	}
	available(t, i.cluster)
	if left, err := i.client.CoreV1().ServiceAccounts("credence-system").Get(t.Context(), "credence-test", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("helm test leaves its account: %v %v", left, err)
	}

	made, err := makeIdentity(t.Context(), i.identities, "app")
	if err != nil {
		t.Fatal(err)
	}
	subject := verified(t, i.client)
	i.podHasItsIdentity(t)
	i.staysAvailable(t)
	i.isReachedWithoutKeys(t)

	// TestPartsOnANode uninstalls while they run.
	i.endProcesses(t)
	if stdout, stderr, err := helm(t, i.kubeconfig, "uninstall", "credence", "--namespace", "credence-system", "--wait"); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	worksElsewhere(t, i.client)
	i.helm(t, "install", i.tag)
	available(t, i.cluster)
	again, err := i.identities.Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.GetUID() != made.GetUID() || verified(t, i.client) != subject {
		t.Errorf("the identity is another one after installing again: uid %s, want %s", again.GetUID(), made.GetUID())
	}

	// The processes take the API with them.
	deleteNamespace(t, i.client, system)
	worksElsewhere(t, i.client)
}

// imageIsMissing installs with an image that can't be pulled. Helm fails, the rest of the cluster works, and the pods have the reason.
func (i *installation) imageIsMissing(t *testing.T) {
	t.Helper()
	if _, stderr, err := i.tryHelm(t, "install", "missing", "10s"); err == nil || !strings.Contains(stderr, "Deployment/credence-system/credence-") {
		t.Errorf("an install with an image that is missing: %v\n%s", err, stderr)
	}
	worksElsewhere(t, i.client)
	for command, want := range map[string]string{ // as docs/howto/install.md has them
		"get pods -n credence-system":               "ImagePull",
		"events -n credence-system --types=Warning": i.registry + "/credence-server:missing: not found",
	} {
		eventually(t, func(ctx context.Context) error {
			kubectl := exec.CommandContext(ctx, controlplane.Program("kubectl"), strings.Fields("--kubeconfig "+i.kubeconfig+" "+command)...)
			if output, err := kubectl.CombinedOutput(); err != nil || !bytes.Contains(output, []byte(want)) {
				return fmt.Errorf("kubectl %s: %w, want %q in\n%s", command, err, want, output)
			}
			return nil
		})
	}
}

// isReachedWithoutKeys revokes all keys that sign. New replicas are ready all the same: the command that lets others sign is a request to them.
func (i *installation) isReachedWithoutKeys(t *testing.T) {
	t.Helper()
	run := func(program string, arguments ...string) {
		t.Helper()
		runProgram(t, i.client, i.kubeconfig, program, arguments...)
	}
	ring, err := dynamic.NewForConfigOrDie(i.cluster.Admin).Resource(schema.GroupVersionResource{Group: "identity.credence.dev", Version: "v1alpha1", Resource: "keyrings"}).Get(t.Context(), "workload-identities", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := unstructured.NestedSlice(ring.Object, "status", "keys")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		if key := each.(map[string]any); key["state"] == "active" {
			run("credence", "keys", "revoke", key["id"].(string), "--reason", "a drill", "--yes", "--wait", "0")
		}
	}
	eventually(t, func(ctx context.Context) error {
		raw, err := requestToken(ctx, i.client)
		if !apierrors.IsServiceUnavailable(err) || !strings.Contains(string(raw), "active") {
			return fmt.Errorf("a token without keys: %w %s", err, raw)
		}
		return nil
	})
	run("kubectl", "rollout", "restart", "deployment/credence-apiserver", "-n", system)
	run("kubectl", "rollout", "status", "deployment/credence-apiserver", "-n", system, "--timeout", "5m")
	run("credence", "keys", "rotate", "--now", "--accept-refusals", "--reason", "the drill is over")
	eventually(t, func(ctx context.Context) error {
		_, err := requestToken(ctx, i.client)
		return err
	})
}

// endProcesses ends all processes of the installation, which can delete nothing afterwards.
func (i *installation) endProcesses(t *testing.T) {
	t.Helper()
	deployments := i.client.AppsV1().Deployments(system)
	list, err := deployments.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range list.Items {
		if _, err := deployments.Patch(t.Context(), each.Name, types.MergePatchType, []byte(`{"spec": {"replicas": 0}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func(ctx context.Context) error {
		left, err := i.pods(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("pods of %d components are left", len(left))
		}
		return err
	})
}

// podHasItsIdentity runs a pod of the namespace default, which waits for its token.
func (i *installation) podHasItsIdentity(t *testing.T) {
	t.Helper()
	client := i.client
	labels := []byte(`{"metadata": {"labels": {"identity.credence.dev/workload-identities": "enabled"}}}`)
	if _, err := client.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	bindRole(t, client, "default", "credence-agent", "ClusterRole", "credence:agent:identities", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "credence-agent"})
	mayUseApp(t, client, "default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "app", Image: i.registry + "/credence:" + i.tag, Args: []string{"version"}}},
	}}
	eventually(t, func(ctx context.Context) error { // until the API server has seen the label, and who may use the identity
		made, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(made.Spec.Volumes) < 2 {
			err = fmt.Errorf("the pod would have no volume with a token: %+v", made.Spec.Volumes)
		}
		return err
	})
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if found := succeeded(t, client, "default"); len(found.Spec.Volumes) < 2 {
		t.Errorf("the pod has no volume with a token: %+v", found.Spec.Volumes)
	}
}

// mayUseApp lets the service account default of a namespace use the identity app, and names it there.
func mayUseApp(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	bindRole(t, client, namespace, "use", "ClusterRole", "credence:workloadidentities:user", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"})
	annotations := []byte(`{"metadata": {"annotations": {"identity.credence.dev/workload-identities": "app"}}}`)
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Patch(ctx, "default", types.MergePatchType, annotations, metav1.PatchOptions{})
		return err
	})
}

// succeeded waits until the pod app has, and returns it.
func succeeded(t *testing.T, client kubernetes.Interface, namespace string) (pod *corev1.Pod) {
	t.Helper()
	eventually(t, func(ctx context.Context) (err error) {
		if pod, err = client.CoreV1().Pods(namespace).Get(ctx, "app", metav1.GetOptions{}); err == nil && pod.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("the pod is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return err
	})
	return pod
}

// verified issues a token of the identity app, verifies it with the keys that discovery serves, and returns its subject.
func verified(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	subject, _ := verify(t, client, issue(t, client))
	return subject
}

// requestToken requests a token of the identity app.
func requestToken(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	return client.CoreV1().RESTClient().Post().AbsPath("/apis/authentication.gardener.cloud/v1alpha1/namespaces/default/workloadidentities/app/token").
		Body([]byte(`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "TokenRequest", "spec": {}}`)).DoRaw(ctx)
}

// issue returns a token of the identity app.
func issue(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	raw, err := requestToken(t.Context(), client)
	if err != nil {
		t.Fatalf("request a token: %v\n%s", err, raw)
	}
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// verify verifies a token with the keys that discovery serves, and returns its subject and the ID of its key.
func verify(t *testing.T, client kubernetes.Interface, text string) (subject, key string) {
	t.Helper()
	published := func(path string, into any) {
		t.Helper()
		raw, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/credence-system/services/https:credence-discovery:https/proxy" + path).DoRaw(t.Context())
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatalf("read %s of discovery: %v", path, err)
		}
	}
	var configuration struct {
		Issuer string
		Keys   string `json:"jwks_uri"`
	}
	published("/.well-known/openid-configuration", &configuration)
	if configuration.Issuer != issuer {
		t.Errorf("the issuer is %q, want %q", configuration.Issuer, issuer)
	}
	var keys jose.JSONWebKeySet
	published(strings.TrimPrefix(configuration.Keys, issuer), &keys)
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := token.Claims(keys, &claims); err != nil {
		t.Fatalf("verify the token: %v", err)
	}
	return claims.Subject, token.Headers[0].KeyID
}

var workloadIdentities = schema.GroupVersionResource{Group: "authentication.gardener.cloud", Version: "v1alpha1", Resource: "workloadidentities"}

// makeIdentity makes an identity of the target system generic, with a host of its name as the audience.
func makeIdentity(ctx context.Context, identities dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"audiences": []any{name + ".example.com"}, "targetSystem": map[string]any{"type": "generic"}},
	}}
	return identities.Create(ctx, o, metav1.CreateOptions{})
}

func identity(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// available waits until the cluster reaches the API.
func available(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(cluster.Admin)
	services := dynamic.NewForConfigOrDie(cluster.Admin).Resource(apiServices)
	for _, name := range []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"} {
		eventually(t, func(ctx context.Context) error {
			found, err := services.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if raw, _ := json.Marshal(found.Object["status"]); !bytes.Contains(raw, []byte(`"status":"True"`)) {
				return errors.New(string(raw))
			}
			// kube-apiserver forwards requests once it has seen this itself.
			version, group, _ := strings.Cut(name, ".")
			_, err = client.CoreV1().RESTClient().Get().AbsPath("/apis/" + group + "/" + version).DoRaw(ctx)
			return err
		})
	}
}

// state describes the pods of an installation that did not succeed.
func state(t *testing.T, client kubernetes.Interface, namespace string) string {
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if container.Ready {
				continue
			}
			lines := int64(5)
			log, _ := client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(t.Context())
			fmt.Fprintf(&out, "%s: %+v\n%s\n", pod.Name, container.State, log)
		}
	}
	return out.String()
}
