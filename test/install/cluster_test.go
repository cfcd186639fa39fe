package install

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/registration"
	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// Installing, upgrading, uninstalling and installing again, on a cluster whose Pod Security Standard is enforced. It has no node, so no
// pod starts: the worst case of an image that can't be pulled.
func TestLifeOfAnInstallation(t *testing.T) {
	for program, source := range map[string]string{"helm": "credence", "helm3": "existing"} {
		t.Run(program, func(t *testing.T) { lifeOfAnInstallation(t, program, source) })
	}
}

// refusedBesideACRD has another project serve the group version of Credence's API.
func refusedBesideACRD(t *testing.T, program, kubeconfig, file, issuer string) {
	t.Helper()
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	testkit.Must(t, os.WriteFile(crd, []byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: openidconnects.authentication.gardener.cloud}, spec: {
		group: authentication.gardener.cloud, scope: Cluster, names: {plural: openidconnects, singular: openidconnect, kind: OpenIDConnect},
		versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`), 0o600))
	kubectl := func(arguments ...string) {
		t.Helper()
		output, err := exec.CommandContext(t.Context(), controlplane.Program("kubectl"), append(arguments, "--kubeconfig", kubeconfig)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	kubectl("create", "-f", crd)
	kubectl("wait", "--for=create", "apiservice/v1alpha1.authentication.gardener.cloud", "--timeout=1m")
	_, stderr, err := runHelm(t, program, kubeconfig, "install", "credence", file, "--namespace", system, "--set", issuer)
	if err == nil || !strings.Contains(stderr, "a CustomResourceDefinition has the API authentication.gardener.cloud/v1alpha1") {
		t.Errorf("beside a CRD of the group version: %v\n%s", err, stderr)
	}
	kubectl("delete", "-f", crd)
	kubectl("wait", "--for=delete", "apiservice/v1alpha1.authentication.gardener.cloud", "--timeout=1m")
}

// lifeOfAnInstallation is one with certificates of a source.
func lifeOfAnInstallation(t *testing.T, program, source string) {
	folder := t.TempDir()
	cluster, err := controlplane.Start(t.Context(), folder, "--port", "0", "--apiserver-arg=--admission-control-config-file="+admissionFile(t, limitedPriorities))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	kubeconfig := filepath.Join(folder, "admin.kubeconfig")
	client := kubernetes.NewForConfigOrDie(cluster.Admin)
	makeNamespace(t, client, system, underRestricted)
	file := packaged(t)
	run := func(arguments ...string) {
		t.Helper()
		if stdout, stderr, err := runHelm(t, program, kubeconfig, append(arguments, "--namespace", "credence-system")...); err != nil {
			t.Fatalf("helm %s: %v\n%s%s", strings.Join(arguments, " "), err, stdout, stderr)
		}
	}
	issuer := "issuer=https://id.example.com,registry.configMap=registries,certificates.source=" + source
	refusedBesideACRD(t, program, kubeconfig, file, issuer)
	run("install", "credence", file, "--set", issuer)
	podsAreMade(t, client, "app.kubernetes.io/component")
	prioritiesNeedQuota(t, client)

	// Other namespaces are not affected.
	worksElsewhere(t, client)

	// A second installation is refused, and changes nothing of the first.
	before := versions(t, cluster.Admin)
	_, stderr, err := runHelm(t, program, kubeconfig, "install", "second", file, "--namespace", "credence-system", "--set", issuer)
	if err == nil || !strings.Contains(stderr, `current value is "credence"`) {
		t.Errorf("a second installation: %v\n%s", err, stderr)
	}
	if diff := cmp.Diff(before, versions(t, cluster.Admin)); diff != "" {
		t.Errorf("a second installation that was refused changed something (-before +after):\n%s", diff)
	}

	// Data that was written meanwhile stays over an upgrade, and over uninstalling.
	ring := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credence-keys"}, Type: "identity.credence.dev/key-ring", Data: map[string][]byte{"ring.json": []byte("the ring")}}
	if _, err := client.CoreV1().Secrets("credence-system").Create(t.Context(), ring, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// So does what the webhook writes into its configurations: an upgrade neither conflicts with it nor takes it back.
	reviews := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	written, err := reviews.Get(t.Context(), "credence-gmsa", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := "/secret/validate"
	written.Webhooks[0].ClientConfig.Service.Path = &path
	if _, err := reviews.Update(t.Context(), written, metav1.UpdateOptions{FieldManager: "credence-webhook"}); err != nil {
		t.Fatal(err)
	}
	run("upgrade", "credence", file, "--set", issuer, "--set", "gmsa.enforcement=Warn", "--set", "pods.replicas=3")
	if written, err = reviews.Get(t.Context(), "credence-gmsa", metav1.GetOptions{}); err != nil || written.Webhooks[0].ClientConfig.Service.Path == nil || *written.Webhooks[0].ClientConfig.Service.Path != path {
		t.Errorf("after an upgrade the path of reviews is another one: %v, %+v", err, written.Webhooks)
	}
	stays := func() {
		t.Helper()
		keys, err := client.CoreV1().Secrets("credence-system").Get(t.Context(), "credence-keys", metav1.GetOptions{})
		if err != nil || string(keys.Data["ring.json"]) != "the ring" {
			t.Errorf("keys: %v, %q", err, keys.Data)
		}
	}
	stays()
	// No process of ours runs, which could delete what it has made.
	registerWithoutServer(t, cluster.Admin)
	run("uninstall", "credence")
	stays()
	nothingHinders(t, client)
	run("install", "credence", file, "--set", issuer)
	stays()
	if program == "helm" {
		namespaceFirst(t, cluster.Admin, kubeconfig, issuer, run)
	}
}

// nothingHinders finds a cluster after uninstalling as it was: also in namespaces with labels of Credence pods are made and deleted, and no right of it is left.
func nothingHinders(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	worksIn(t, client, map[string]string{"identity.credence.dev/workload-identities": "enabled", "identity.credence.dev/profiles": "enabled"})
	left, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range left.Items {
		if strings.HasPrefix(role.Name, "credence:") {
			t.Errorf("the ClusterRole %s is left", role.Name)
		}
	}
}

// namespaceFirst deletes the namespace of an installation that has no process which could take the API with it. That keeps every namespace from
// being deleted, until an admin does as docs/howto/uninstall.md has it.
func namespaceFirst(t *testing.T, admin *rest.Config, kubeconfig, issuer string, helm func(...string)) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(admin)
	registerWithoutServer(t, admin)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), system, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		found, err := client.CoreV1().Namespaces().Get(ctx, system, metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(found.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceDeletionDiscoveryFailure && c.Status == corev1.ConditionTrue
		}) {
			err = fmt.Errorf("the API does not hinder its deletion: %+v", found.Status)
		}
		return err
	})
	runProgram(t, client, kubeconfig, "kubectl", "delete", "apiservice", "v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev", "--ignore-not-found")
	gone(t, client, system)
	worksElsewhere(t, client)
	// Helm has lost the release with the namespace. With the values of before it takes over what is left of it, so that it can delete that.
	helm("install", "credence", packaged(t), "--set", issuer, "--create-namespace")
	helm("uninstall", "credence")
	nothingHinders(t, client)
}

// registerWithoutServer makes the APIServices as credence-server certificates does, of an API server that does not answer afterwards.
func registerWithoutServer(t *testing.T, admin *rest.Config) {
	t.Helper()
	objects, authority := dynamic.NewForConfigOrDie(admin), testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil)
	registrar := &registration.Registrar{
		Objects: objects, Namespace: system, Log: slog.New(slog.DiscardHandler),
		Bundle: func(context.Context) ([]byte, error) { return authority.PEM(), nil },
		Ready:  func(context.Context, []byte) error { return nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- registrar.Run(ctx) }()
	for _, name := range []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"} {
		eventually(t, func(ctx context.Context) error {
			found, err := objects.Resource(apiServices).Get(ctx, name, metav1.GetOptions{})
			if err == nil && !strings.Contains(fmt.Sprint(found.Object["status"]), "status:False") {
				err = fmt.Errorf("%s: %v", name, found.Object["status"])
			}
			return err
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// versions are the resource versions of all objects of Credence that no controller of Kubernetes writes into.
func versions(t *testing.T, admin *rest.Config) map[string]string {
	t.Helper()
	client, found := metadata.NewForConfigOrDie(admin), map[string]string{}
	for group, resources := range map[schema.GroupVersion][]string{
		{Version: "v1"}: {"configmaps", "secrets", "serviceaccounts", "services"},
		{Group: "rbac.authorization.k8s.io", Version: "v1"}:    {"clusterrolebindings", "rolebindings", "roles"},
		{Group: "admissionregistration.k8s.io", Version: "v1"}: {"mutatingwebhookconfigurations", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"},
	} {
		for _, resource := range resources {
			list, err := client.Resource(group.WithResource(resource)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				if strings.Contains(item.Name, "credence") || strings.HasPrefix(item.Name, "sh.helm.release") {
					found[resource+" "+item.Name] = item.ResourceVersion
				}
			}
		}
	}
	roles, err := kubernetes.NewForConfigOrDie(admin).RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		if strings.Contains(role.Name, "credence") && role.AggregationRule == nil { // else a controller writes its rules at its own time
			found["clusterroles "+role.Name] = role.ResourceVersion
		}
	}
	if len(found) < 50 {
		t.Fatalf("found %d objects only", len(found))
	}
	return found
}

// makeNamespace makes a namespace with labels.
func makeNamespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// underRestricted are labels of a namespace with the Pod Security Standard "restricted".
var underRestricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// podsAreMade waits until each Deployment has its pods: none of them is refused by Pod Security.
func podsAreMade(t *testing.T, client kubernetes.Interface, label string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		deployments, err := client.AppsV1().Deployments("credence-system").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(deployments.Items) < 6 {
			return fmt.Errorf("%d Deployments", len(deployments.Items))
		}
		pods, err := client.CoreV1().Pods("credence-system").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		made := map[string]int32{}
		for _, pod := range pods.Items {
			made[pod.Labels[label]]++
		}
		for _, d := range deployments.Items {
			if component := d.Spec.Template.Labels[label]; made[component] != *d.Spec.Replicas {
				return fmt.Errorf("%d pods of %s, want %d", made[component], component, *d.Spec.Replicas)
			}
		}
		return nil
	})
}

// prioritiesNeedQuota holds the cluster to refuse pods of system priorities where the quota of the chart is not. It deletes that, and makes it again.
func prioritiesNeedQuota(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	quotas := client.CoreV1().ResourceQuotas(system)
	quota, err := quotas.Get(t.Context(), "credence-priorities", metav1.GetOptions{})
	if err != nil || len(quota.Spec.Hard) > 0 {
		t.Fatalf("%v, the quota limits %v", err, quota.Spec.Hard)
	}
	if err := quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%v, %d pods of the webhook", err, len(pods.Items))
	}
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: pods.Items[0].Spec}
	eventually(t, func(ctx context.Context) error { // kube-apiserver sees the deletion a moment later
		_, err := client.CoreV1().Pods(system).Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "insufficient quota to match these scopes") {
			return fmt.Errorf("without a quota: %v", err)
		}
		return nil
	})
	quota.ResourceVersion, quota.UID = "", ""
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// worksElsewhere makes pods, Secrets and rights in a namespace of its own, and deletes it, while nothing of Credence answers.
func worksElsewhere(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	worksIn(t, client, nil)
}

func worksIn(t *testing.T, client kubernetes.Interface, labels map[string]string) {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := made.Name
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	create := func(ctx context.Context) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	if labels != nil { // kube-apiserver forgets a webhook a moment after it is deleted
		eventually(t, create)
	} else if err := create(t.Context()); err != nil {
		t.Errorf("create a pod: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	if _, err := client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a Secret: %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	if _, err := client.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a Role: %v", err)
	}
	deleteNamespace(t, client, namespace)
}

// deleteNamespace returns when it is gone.
func deleteNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	if err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, client, name)
}

func gone(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		found, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is there: %v %v", err, found.Status.Conditions)
	})
}

// eventually waits for a condition, for as long as a busy machine may take.
func eventually(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	testkit.Wait(t, condition)
}

// Documents have blocks that need Helm, and a cluster of the reader's own.
func TestDocumentsWithHelm(t *testing.T) {
	commands := documents.Run(t, documents.All(t), "```console needs=helm", func(t *testing.T) documents.Reader {
		folder := t.TempDir()
		cluster, err := controlplane.Start(t.Context(), folder, "--port", "0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Stop)
		bin := filepath.Dir(controlplane.Program("helm"))
		return documents.Reader{
			Folder:      map[string]string{"deploy": filepath.Join(documents.Repository, "deploy")},
			Environment: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(folder, "admin.kubeconfig")},
		}
	})
	if commands == 0 {
		t.Error("no document has a command that needs Helm")
	}
}
