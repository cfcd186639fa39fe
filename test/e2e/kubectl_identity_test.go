package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
)

// kubeconfigAs writes a kubeconfig for another cluster, whose user is a workload identity of the plane.
func (p plane) kubeconfigAs(t *testing.T, cluster *rest.Config, namespace, identity string) (path, cache string) {
	t.Helper()
	home := t.TempDir()
	path, cache = filepath.Join(home, "kubeconfig"), filepath.Join(home, "cache")
	config := clientcmdapi.NewConfig()
	config.Clusters["second"] = &clientcmdapi.Cluster{Server: cluster.Host, CertificateAuthorityData: cluster.CAData}
	config.Contexts["second"] = &clientcmdapi.Context{Cluster: "second", Namespace: "default"}
	config.CurrentContext = "second"
	must(t, clientcmd.WriteToFile(*config, path))
	p.must(t, "", "credence", "kubeconfig", "workload-identity", identity, "-n", namespace, "--kubeconfig", p.Kubeconfig, "--cache-folder", cache,
		"--entry", identity, "--file", path, "--for-context", "second")
	return path, cache
}

// kubectlWith runs stock kubectl with a kubeconfig, and no other settings.
func kubectlWith(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("kubectl: %v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Stock kubectl and programs with client-go are a workload identity at a cluster that trusts the issuer, and may do there what RBAC
// gives to it: their kubeconfig names the provider, and holds no credential.
func TestPlaneKubectlIsAWorkloadIdentity(t *testing.T) {
	withCluster(t)
	namespace := shared.namespace(t)
	cluster := shared.secondCluster(t)
	identity := shared.create(t, namespace, "deployer", "kubernetes", "second-cluster")
	user := "workload:" + identity.Status.Sub
	kubeconfig, cache := shared.kubeconfigAs(t, cluster, namespace, "deployer")

	ask := []string{"auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"}
	eventually(t, func() error { // the other cluster may not have read the issuer's documents yet
		if out, errs, code := kubectlWith(t, kubeconfig, ask...); code != 0 || out != user || errs != "" {
			return fmt.Errorf("kubectl auth whoami: exit code %d, %q, want %q\n%s", code, out, user, errs)
		}
		return nil
	})
	if _, errs, code := kubectlWith(t, kubeconfig, "get", "configmaps"); code == 0 || !strings.Contains(errs, "Forbidden") || !strings.Contains(errs, user) {
		t.Errorf("kubectl without rights: exit code %d, %s", code, errs)
	}
	admin := need(kubernetes.NewForConfig(cluster))(t)
	need(admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: "edit"},
	}, metav1.CreateOptions{}))(t)
	eventually(t, func() error { // the authorizer reads bindings a moment later
		if out, errs, code := kubectlWith(t, kubeconfig, "auth", "can-i", "create", "configmaps"); code != 0 {
			return fmt.Errorf("kubectl auth can-i: %s%s", out, errs)
		}
		return nil
	})
	if out, errs, code := kubectlWith(t, kubeconfig, "create", "configmap", "made-by-an-identity"); code != 0 {
		t.Errorf("kubectl with rights: exit code %d, %s%s", code, out, errs)
	}

	for what, through := range map[string]func(*rest.Config) (*rest.Config, error){
		"client-go": func(config *rest.Config) (*rest.Config, error) { return config, nil },
		"execcredential": func(config *rest.Config) (*rest.Config, error) {
			pool, err := execcredential.NewPool(execcredential.Options{})
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = pool.Close() })
			return clientgo.Config(pool, config)
		},
	} {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		must(t, err)
		if config, err = through(config); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := takenFor(t, config); got.Username != user {
			t.Errorf("%s: the second cluster takes it for %s, want %s", what, got.Username, user)
		}
	}

	// All of them were one token.
	if out := shared.must(t, "", "credence", "credential", "status", "--cache-folder", cache); strings.Count(out, "workload-identity") != 1 || !strings.Contains(out, "valid") {
		t.Errorf("kept is:\n%s", out)
	}
	// The identity is gone: no client has its rights once the token is, and kubectl reports why.
	shared.must(t, "", "kubectl", "delete", "workloadidentity", "deployer", "-n", namespace)
	shared.must(t, "", "credence", "logout", "--all", "--cache-folder", cache)
	if _, errs, code := kubectlWith(t, kubeconfig, ask...); code == 0 || !strings.Contains(errs, "deployer") || !strings.Contains(errs, "kubectl get workloadidentities") {
		t.Errorf("kubectl as an identity that is gone: exit code %d, %s", code, errs)
	}
}
