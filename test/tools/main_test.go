package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// portsPerPlane is how many consecutive ports a plane uses.
const portsPerPlane = 11

// cluster is where tools are tried.
type cluster struct {
	kubeconfig string
	identities bool // it is a plane
}

// bare and plane are the two clusters, by what a test's name has.
var clusters = map[string]cluster{}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests with both clusters.
func run(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "credence-tools-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	bare := filepath.Join(folder, "bare")
	running, err := controlplane.Start(context.Background(), bare, "--port", "0")
	if err != nil {
		return 0, err
	}
	defer running.Stop()
	port, err := testkit.FreePorts(portsPerPlane)
	if err != nil {
		return 0, err
	}
	plane := filepath.Join(folder, "plane")
	defer exec.Command(controlplane.Program("credence"), "down", "--dir", plane).Run()
	if out, err := exec.Command(controlplane.Program("credence"), "up", "--dir", plane, "--port", fmt.Sprint(port), "--detach").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("credence up: %w\n%s", err, out)
	}
	clusters["without Credence"] = cluster{kubeconfig: filepath.Join(bare, "admin.kubeconfig")}
	clusters["with Credence"] = cluster{kubeconfig: filepath.Join(plane, "kubeconfig"), identities: true}
	return m.Run(), nil
}

// onBoth runs a test on both clusters, in a namespace of its own.
func onBoth(t *testing.T, test func(t *testing.T, c cluster, namespace string)) {
	for name, c := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespaces := kubernetes.NewForConfigOrDie(c.config(t)).CoreV1().Namespaces()
			made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "tools-", Labels: map[string]string{"identity.credence.dev/workload-identities": "enabled"},
			}}, metav1.CreateOptions{})
			testkit.Must(t, err)
			t.Cleanup(func() {
				testkit.Expect(t, namespaces.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}))
			})
			test(t, c, made.Name)
		})
	}
}

func (c cluster) config(t *testing.T) *rest.Config {
	t.Helper()
	config := testkit.Need(clientcmd.BuildConfigFromFlags("", c.kubeconfig))(t)
	config.QPS, config.Burst = 1000, 1000
	return config
}

// release is what the tools apply, in the order in which they sort kinds that they do not know: a binding before its identity.
func (c cluster) release(namespace string) (objects []*unstructured.Unstructured) {
	texts := []string{`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}`}
	if c.identities {
		texts = append(texts,
			`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "CredentialsBinding", "metadata": {"name": "infra"}, "provider": {"type": "generic"}, "workloadIdentityRef": {"name": "backup"}}`,
			`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "credence-agent"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "credence:agent:identities"}, "subjects": [{"kind": "ServiceAccount", "name": "credence-agent", "namespace": "credence-system"}]}`,
			`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "app-uses-identities"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "credence:workloadidentities:user"}, "subjects": [{"kind": "ServiceAccount", "name": "app", "namespace": "`+namespace+`"}]}`,
			`{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app", "annotations": {"identity.credence.dev/workload-identities": "backup"}}}`,
			`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "metadata": {"name": "backup"}, "spec": {"audiences": ["a"], "targetSystem": {"type": "generic"}}}`,
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "labels": {"authentication.gardener.cloud/purpose": "workload-identity-token-requestor"}, "annotations": {"workloadidentity.authentication.gardener.cloud/binding": "infra", "workloadidentity.authentication.gardener.cloud/namespace": "`+namespace+`"}}}`,
		)
	}
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), object); err != nil {
			panic(err)
		}
		object.SetNamespace(namespace)
		objects = append(objects, object)
	}
	return objects
}

// works waits until the binding of the release gives its identity, and the Secret has a token.
func (c cluster) works(t *testing.T, namespace string) {
	t.Helper()
	config := c.config(t)
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace).Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if !c.identities {
		return
	}
	bindings := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "authentication.gardener.cloud", Version: "v1alpha1", Resource: "credentialsbindings"}).Namespace(namespace)
	testkit.Wait(t, func(ctx context.Context) error {
		binding, err := bindings.Get(ctx, "infra", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(binding.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(each any) bool {
			condition := each.(map[string]any)
			return condition["type"] == "Ready" && condition["status"] == "True"
		}) {
			return fmt.Errorf("the binding is not Ready: %v", conditions)
		}
		secret, err := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(namespace).Get(ctx, "token", metav1.GetOptions{})
		if err == nil && len(secret.Data["token"]) == 0 {
			err = fmt.Errorf("the Secret has no token: %v", secret.Annotations)
		}
		return err
	})
}

// command runs a program, and returns what it printed.
func (c cluster) command(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, controlplane.Program(program), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// writeList writes objects to a file, as a List.
func writeList(file string, objects []*unstructured.Unstructured) error {
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
