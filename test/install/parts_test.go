package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// partial is a cluster with a node that can pull the images, where one part after the other is installed alone.
type partial struct {
	*controlplane.ControlPlane
	client     kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string
	chart      string
	images     []string // values
}

func (p *partial) helm(t *testing.T, arguments ...string) {
	t.Helper()
	arguments = append(arguments, "--namespace", "credence-system")
	if arguments[0] == "install" || arguments[0] == "upgrade" {
		arguments = append(arguments, "--wait", "--timeout", "10m")
	}
	if stdout, stderr, err := helm(t, p.kubeconfig, arguments...); err != nil {
		t.Fatalf("helm %s: %v\n%s%s\n%s", strings.Join(arguments, " "), err, stdout, stderr, state(t, p.client, system))
	}
}

// install installs the chart with values, and uninstalls it when the test ends, unless it has gone with its namespace.
func (p *partial) install(t *testing.T, set ...string) {
	t.Helper()
	t.Cleanup(func() {
		if stdout, stderr, err := helm(t, p.kubeconfig, "uninstall", "credence", "--namespace", "credence-system", "--wait", "--ignore-not-found"); err != nil {
			t.Errorf("%v\n%s%s", err, stdout, stderr)
		}
	})
	p.helm(t, append(p.arguments("install", set...), "--take-ownership", "--force-conflicts")...)
}

// runs holds the Deployments that there are to these.
func (p *partial) runs(t *testing.T, want ...string) {
	t.Helper()
	found, err := p.client.AppsV1().Deployments("credence-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, each := range found.Items {
		names = append(names, strings.TrimPrefix(each.Name, "credence-"))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("Deployments (-want +have):\n%s", diff)
	}
}

// parts returns the cluster with an empty namespace for the chart.
func (i *installation) parts(t *testing.T) *partial {
	t.Helper()
	p := &partial{
		ControlPlane: i.cluster, client: i.client, objects: dynamic.NewForConfigOrDie(i.cluster.Admin), kubeconfig: i.kubeconfig, chart: i.chart,
		images: append([]string{"image.registry=" + i.registry}, i.digests...),
	}
	makeNamespace(t, p.client, system, nil)
	return p
}

// Each part of the chart works alone, on a real node: gMSA beside what windows-gmsa has installed, the agent and webhook of a cluster whose
// identities are in another one, and the identities; and so does the chart with storage, certificates and keys of others. Where no keys may be left of the
// installation before, its namespace goes.
func TestPartsOnANode(t *testing.T) {
	t.Parallel()
	i := withNode(t)
	p := i.parts(t)
	leaveOpenShift := p.openShift(t)
	t.Run("gMSA", p.gmsaAlone)
	t.Run("gMSA by policies", p.gmsaByPolicies)
	t.Run("workloads", p.workloadsAlone)
	t.Run("tokens without Secrets, identities in a volume", func(t *testing.T) { p.tokensWithoutSecrets(t, i) })
	p.forgetKeys(t)
	t.Run("identities", func(t *testing.T) {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		folder := volume(t, p.client, "credence-backup")
		p.install(t, "issuer="+issuer, "workloads.enabled=false", "gmsa.enabled=false", "pods.replicas=1",
			"backup.enabled=true", "backup.schedule=0 0 1 1 *", "backup.ring=true", "backup.recipients={"+key.Recipient().String()+"}")
		p.runs(t, "apiserver", "certificates", "controller", "discovery")
		available(t, p.ControlPlane)
		p.helm(t, "test", "credence")
		t.Run("backups", func(t *testing.T) { p.backups(t, folder, key) })
		_, stderr, err := helm(t, p.kubeconfig, "upgrade", "credence", p.chart, "--namespace", "credence-system", "--reuse-values", "--set", "issuer=https://id.example.com")
		if err == nil || !strings.Contains(stderr, `can't be changed from "`+issuer+`" to "https://id.example.com"`) {
			t.Errorf("an upgrade to another issuer: %v\n%s", err, stderr)
		}
		worksElsewhere(t, p.client)
	})
	leaveOpenShift()
	t.Run("certificates of cert-manager", func(t *testing.T) { p.certificatesOfCertManager(t, i) })
	t.Run("identities in etcd, keys of a signer", func(t *testing.T) { p.identitiesInEtcd(t, i) })
	worksElsewhere(t, p.client)
}

// openShift makes the cluster choose the users of pods in the namespace of the chart, and refuse others, as the security context constraint restricted-v2 does.
func (p *partial) openShift(t *testing.T) (remove func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "openshift.yaml")
	const pods = `{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: credence-system}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}`
	testkit.Must(t, os.WriteFile(file, []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitycontextconstraints.security.openshift.io}
spec:
  group: security.openshift.io
  scope: Cluster
  names: {kind: SecurityContextConstraints, plural: securitycontextconstraints}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: restricted-v2}
spec:
  matchConstraints: `+pods+`
  matchConditions: [{name: none, expression: "!has(object.spec.securityContext.runAsUser) && !has(object.spec.securityContext.fsGroup)"}]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: 1000650000, fsGroup: 1000650000}}}"}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: restricted-v2}, spec: {policyName: restricted-v2}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: restricted-v2}
spec:
  matchConstraints: `+pods+`
  validations:
  - expression: "object.spec.securityContext.runAsUser == 1000650000 && object.spec.securityContext.fsGroup == 1000650000 && object.spec.containers.all(c, !has(c.securityContext.runAsUser))"
    message: unable to validate against any security context constraint
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: restricted-v2}, spec: {policyName: restricted-v2, validationActions: [Deny]}}
`), 0o600))
	p.command(t, "kubectl", "create", "-f", file)
	eventually(t, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}, Containers: []corev1.Container{{Name: "app", Image: "app", SecurityContext: &corev1.SecurityContext{}}}}}
		made, err := p.client.CoreV1().Pods(system).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || made.Spec.SecurityContext.RunAsUser == nil {
			return fmt.Errorf("the user of a pod is not chosen: %w", err)
		}
		pod.Spec.SecurityContext.RunAsUser = ptr.To[int64](65532)
		if _, err = p.client.CoreV1().Pods(system).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil || !strings.Contains(err.Error(), "security context constraint") {
			return fmt.Errorf("a pod that chooses its user: %w", err)
		}
		return nil
	})
	return func() { p.command(t, "kubectl", "delete", "-f", file) }
}

var credentialSpecs = schema.GroupVersionResource{Group: "windows.k8s.io", Version: "v1", Resource: "gmsacredentialspecs"}

// windowsGMSA is a stand-in for windows-gmsa: objects as its chart makes them, and a webhook that fills in contents for a whole pod, and
// refuses no pod, as its releases refuse none for what an init container has.
func (p *partial) windowsGMSA(t *testing.T) (remove func()) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		var pod corev1.Pod
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err == nil && r.URL.Path == "/mutate" && pod.Spec.SecurityContext != nil {
			if options := pod.Spec.SecurityContext.WindowsOptions; options != nil && options.GMSACredentialSpecName != nil && options.GMSACredentialSpec == nil {
				found, err := p.objects.Resource(credentialSpecs).Get(r.Context(), *options.GMSACredentialSpecName, metav1.GetOptions{})
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				contents, _ := json.Marshal(found.Object["credspec"])
				patch, _ := json.Marshal([]map[string]string{{"op": "add", "path": "/spec/securityContext/windowsOptions/gmsaCredentialSpec", "value": string(contents)}})
				kind := admissionv1.PatchTypeJSONPatch
				review.Response.Patch, review.Response.PatchType = patch, &kind
			}
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	hook := func(path, operations string) string {
		return fmt.Sprintf(`
metadata: {name: windows-gmsa, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: windows-gmsa, meta.helm.sh/release-namespace: windows-gmsa}}
webhooks:
- name: admission-webhook.windows-gmsa.sigs.k8s.io
  clientConfig: {url: %q, caBundle: %s}
  rules: [{operations: [%s], apiGroups: [""], apiVersions: ["*"], resources: [pods]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1, v1beta1]
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [windows-gmsa]}, {key: windows.k8s.io/disabled, operator: NotIn, values: ["true"]}]}
`, server.URL+path, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), operations)
	}
	const registration, schemaOfSpec = "apiVersion: admissionregistration.k8s.io/v1\nkind: ", `{openAPIV3Schema: {type: object, properties: {credspec: {type: object, properties: {
    ActiveDirectoryConfig: {type: object, properties: {GroupManagedServiceAccounts: {type: array, items: {type: object, properties: {Name: {type: string}, Scope: {type: string}}}}}},
    CmsPlugins: {type: array, items: {type: string}},
    DomainJoinConfig: {type: object, properties: {DnsName: {type: string}, DnsTreeName: {type: string}, Guid: {type: string}, MachineAccountName: {type: string}, NetBiosName: {type: string}, Sid: {type: string}}}}}}}}`
	file := filepath.Join(t.TempDir(), "windows-gmsa.yaml")
	if err := os.WriteFile(file, []byte(registration+"MutatingWebhookConfiguration"+hook("/mutate", "CREATE")+"---\n"+registration+"ValidatingWebhookConfiguration"+hook("/validate", "CREATE, UPDATE")+`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gmsacredentialspecs.windows.k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/tree/master/keps/sig-windows/689-windows-gmsa"}}
spec:
  group: windows.k8s.io
  scope: Cluster
  names: {kind: GMSACredentialSpec, plural: gmsacredentialspecs}
  versions:
  - {name: v1alpha1, served: true, storage: false, deprecated: true, schema: `+schemaOfSpec+`}
  - {name: v1, served: true, storage: true, schema: `+schemaOfSpec+`}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.command(t, "kubectl", "create", "-f", file)
	remove = func() {
		t.Helper()
		p.command(t, "kubectl", "delete", "--ignore-not-found", "mutatingwebhookconfigurations/windows-gmsa", "validatingwebhookconfigurations/windows-gmsa")
	}
	t.Cleanup(remove)
	return remove
}

// credentialSpec makes one, which the service account default of the namespace default may use.
func (p *partial) credentialSpec(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var made *unstructured.Unstructured
	eventually(t, func(ctx context.Context) (err error) {
		made, err = p.objects.Resource(credentialSpecs).Create(ctx, identity(t, `{"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "metadata": {"name": "shop"}, "credspec": {
			"ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [{"Name": "Shop", "Scope": "CONTOSO"}, {"Name": "Shop", "Scope": "contoso.com"}]}, "CmsPlugins": ["ActiveDirectory"],
			"DomainJoinConfig": {"DnsName": "contoso.com", "DnsTreeName": "contoso.com", "Guid": "244818ae-87ca-4fcd-92ec-e79e5252348a", "MachineAccountName": "Shop", "NetBiosName": "CONTOSO", "Sid": "S-1-5-21-2126729477-2524075714-3094792973"}}}`),
			metav1.CreateOptions{})
		return err
	})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{"shop"}, Verbs: []string{"use"}}}}
	if _, err := p.client.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bindRole(t, p.client, "default", "shop", "Role", "shop", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"})
	if _, err := p.client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return made
}

func bindRole(t *testing.T, client kubernetes.Interface, namespace, name, kind, role string, subject rbacv1.Subject) {
	t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: []rbacv1.Subject{subject}}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// windowsPod is tried out, and returned with the warnings.
func (p *partial) windowsPod(ctx context.Context, account string, change func(*corev1.PodSpec)) (*corev1.Pod, []string, error) {
	name := "shop"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "iis"}, Spec: corev1.PodSpec{
		OS: &corev1.PodOS{Name: corev1.Windows}, ServiceAccountName: account,
		SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: &name}},
		InitContainers:  []corev1.Container{{Name: "check", Image: "servercore"}},
		Containers:      []corev1.Container{{Name: "iis", Image: "iis"}},
	}}
	if change != nil {
		change(&pod.Spec)
	}
	config, heard := rest.CopyConfig(p.Admin), &warnings{}
	config.WarningHandler = heard
	made, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return made, heard.texts, err
}

type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// smuggled gives an init container contents without a name.
func smuggled(spec *corev1.PodSpec) {
	contents := `{"evil": true}`
	spec.InitContainers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: &contents}}
}

// filled waits until a pod is admitted with its contents.
func (p *partial) filled(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		pod, _, err := p.windowsPod(ctx, "default", nil)
		if err != nil {
			return err
		}
		if contents := pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpec; contents == nil || !strings.Contains(*contents, "CONTOSO") {
			return fmt.Errorf("contents %v", contents)
		}
		return nil
	})
}

// refused waits until a pod is refused.
func (p *partial) refused(t *testing.T, account string, change func(*corev1.PodSpec)) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, _, err := p.windowsPod(ctx, account, change)
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the pod of %s is not refused: %v", account, err)
		}
		return nil
	})
}

func (p *partial) gmsaAlone(t *testing.T) {
	remove := p.windowsGMSA(t)
	before := p.credentialSpec(t)
	eventually(t, func(ctx context.Context) error {
		if _, _, err := p.windowsPod(ctx, "stranger", smuggled); err != nil {
			return fmt.Errorf("the stand-in refuses what is to be refused later: %w", err)
		}
		return nil
	})
	p.install(t, "identities.enabled=false", "workloads.enabled=false", "gmsa.enforcement=Warn")
	p.runs(t, "certificates", "webhook")
	p.filled(t)
	eventually(t, func(ctx context.Context) error {
		_, heard, err := p.windowsPod(ctx, "default", smuggled)
		if err != nil || !strings.Contains(strings.Join(heard, "\n"), "gmsaCredentialSpec") {
			return fmt.Errorf("%w, warnings %q", err, heard)
		}
		return nil
	})

	p.helm(t, "upgrade", "credence", p.chart, "--reuse-values", "--set", "gmsa.enforcement=Deny")
	p.filled(t)
	p.refused(t, "default", smuggled)
	p.refused(t, "stranger", nil)
	remove()
	p.filled(t)
	p.refused(t, "default", smuggled)
	p.refused(t, "stranger", nil)
	worksElsewhere(t, p.client)

	// By its certificate the API server is known, at paths that are not secret; and by secret paths again.
	for _, reviewer := range []string{"kube-apiserver-kubelet-client", "another", ""} {
		p.helm(t, "upgrade", "credence", p.chart, "--reuse-values", "--force-conflicts", "--set", "certificates.reviewer="+reviewer)
		if reviewer == "another" {
			eventually(t, func(ctx context.Context) error {
				if _, _, err := p.windowsPod(ctx, "default", nil); !apierrors.IsInternalError(err) {
					return fmt.Errorf("a certificate of another name is taken: %w", err)
				}
				return nil
			})
			continue
		}
		p.filled(t)
		p.refused(t, "stranger", nil)
		registered, err := p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "zz-credence-gmsa", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if path := registered.Webhooks[0].ClientConfig.Service.Path; path == nil || *path == "/mutate" && reviewer == "" {
			t.Errorf("reviewer %q: reviews are sent to %v", reviewer, path)
		}
	}
	after, err := p.objects.Resource(credentialSpecs).Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil || after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the GMSACredentialSpec was changed: %v\n%v", err, after)
	}
}

// gmsaByPolicies has the objects of gmsaAlone, which uninstalling kept.
func (p *partial) gmsaByPolicies(t *testing.T) {
	p.install(t, "identities.enabled=false", "workloads.enabled=false", "gmsa.withoutWebhook=true")
	p.runs(t)
	p.filled(t)
	p.refused(t, "default", smuggled)
	p.refused(t, "stranger", nil)
}

// age makes a token of the Secret credence-identities one whose first half is over, without a valid signature.
func (p *partial) age(t *testing.T, key string) string {
	t.Helper()
	secrets := p.client.CoreV1().Secrets("credence-system")
	secret, err := secrets.Get(t.Context(), "credence-identities", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(secret.Data[key]), ".")
	var claims map[string]any
	if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(payload, &claims) != nil {
		t.Fatalf("%s: %v", key, err)
	}
	claims["iat"], claims["exp"] = time.Now().Add(-25*time.Hour).Unix(), time.Now().Add(23*time.Hour).Unix()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(payload)
	secret.Data[key] = []byte(strings.Join(parts, "."))
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[key])
}

// workloadsAlone delivers the token of an identity that another cluster has. Agent and webhook reach it on the machine's loopback, and so
// are pods with hostNetwork. A Secret that images are pulled with has the password of a registry that takes the token itself.
func (p *partial) workloadsAlone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "identities")
	credence := func(arguments ...string) {
		t.Helper()
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), controlplane.Program("credence"), append(arguments, "--dir", folder)...).CombinedOutput(); err != nil {
			t.Fatalf("credence %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	t.Cleanup(func() { credence("down") })
	port, err := testkit.FreePorts(11)
	if err != nil {
		t.Fatal(err)
	}
	credence("up", "--port", strconv.Itoa(port), "--detach")
	admin, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	makeNamespace(t, kubernetes.NewForConfigOrDie(admin), "fruit", nil)
	if _, err := makeIdentity(t.Context(), dynamic.NewForConfigOrDie(admin).Resource(workloadIdentities).Namespace("fruit"), "banana"); err != nil {
		t.Fatal(err)
	}
	join := exec.CommandContext(t.Context(), controlplane.Program("credence"), "cluster", "join", "east", "--identities", "fruit", "--workload-kubeconfig", p.kubeconfig)
	join.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"))
	if out, err := join.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	aged := p.age(t, "webhook.token")
	makeNamespace(t, p.client, "backup", map[string]string{"identity.credence.dev/workload-identities": "enabled"})
	if _, err := p.client.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "registries"},
		Data:       map[string]string{"registries.yaml": "registries: [{images: registry.example.com, audiences: [banana.example.com], exchange: token-server}]"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Two replicas of a pod with hostNetwork would need two nodes.
	p.install(t, "identities.enabled=false", "gmsa.enabled=false", "workloads.identityKubeconfigSecret=credence-identities", "pods.replicas=1",
		"components.agent.hostNetwork=true", "components.webhook.hostNetwork=true", "components.webhook.preStopSeconds=1", "registry.configMap=registries", "registry.namespaces={backup}")
	p.runs(t, "agent", "binder", "certificates", "profiles", "registry", "webhook")
	eventually(t, func(ctx context.Context) error {
		secret, err := p.client.CoreV1().Secrets("credence-system").Get(ctx, "credence-identities", metav1.GetOptions{})
		if err == nil && string(secret.Data["webhook.token"]) == aged {
			err = errors.New("the agent has not renewed the token of the webhook")
		}
		return err
	})

	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:        "banana",
		Labels:      map[string]string{"authentication.gardener.cloud/purpose": "workload-identity-token-requestor", "workloadidentity.authentication.gardener.cloud/provider": "generic"},
		Annotations: map[string]string{"workloadidentity.authentication.gardener.cloud/name": "banana", "workloadidentity.authentication.gardener.cloud/namespace": "fruit"},
	}}
	pull := wanted.DeepCopy()
	pull.Name, pull.Type, pull.Annotations["identity.credence.dev/registries"] = "pull", corev1.SecretTypeDockerConfigJson, "registry.example.com"
	for _, secret := range []*corev1.Secret{wanted, pull} {
		eventually(t, func(ctx context.Context) error {
			_, err := p.client.CoreV1().Secrets("backup").Create(ctx, secret, metav1.CreateOptions{})
			return err
		})
	}
	var token []byte
	eventually(t, func(ctx context.Context) error {
		found, err := p.client.CoreV1().Secrets("backup").Get(ctx, "banana", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if token = found.Data["token"]; len(token) == 0 {
			return fmt.Errorf("no token in %v", found.ObjectMeta)
		}
		return nil
	})
	eventually(t, func(ctx context.Context) error {
		found, err := p.client.CoreV1().Secrets("backup").Get(ctx, "pull", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var file struct {
			Auths map[string]struct{ Auth []byte }
		}
		if err := json.Unmarshal(found.Data[corev1.DockerConfigJsonKey], &file); err != nil {
			return err
		}
		if own := string(found.Data["token"]); own == "" || string(file.Auths["registry.example.com"].Auth) != "credence:"+own {
			return fmt.Errorf("%d registries have a password, and it is not the token of %v\n%s", len(file.Auths), found.ObjectMeta, state(t, p.client, system))
		}
		return nil
	})
	// Another port of the webhook, on the same node. Its other one is free once the old pod is gone, which is the first that goes.
	p.helm(t, "upgrade", "credence", p.chart, "--reuse-values", "--set", "ports.webhook.https=10260")
	p.command(t, "kubectl", "scale", "deployment/credence-webhook", "-n", system, "--replicas=2")
	eventually(t, func(ctx context.Context) error { // the second one has no place, and does not fail in another's
		pods, err := p.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook", FieldSelector: "status.phase=Pending"})
		if err == nil && !strings.Contains(fmt.Sprint(pods.Items), "didn't have free ports") {
			err = fmt.Errorf("%d pods of the webhook wait: %+v", len(pods.Items), pods.Items)
		}
		return err
	})
	p.command(t, "kubectl", "scale", "deployment/credence-webhook", "-n", system, "--replicas=1")
	wanted.Name = "again"
	eventually(t, func(ctx context.Context) error {
		_, err := p.client.CoreV1().Secrets("backup").Create(ctx, wanted, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	verify := exec.CommandContext(t.Context(), controlplane.Program("credence"), "token", "verify", "-", "--audience", "banana.example.com", "--ca-file", filepath.Join(folder, "ca.crt"))
	verify.Stdin = strings.NewReader(string(token))
	verify.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), ":fruit:banana:") {
		t.Errorf("%v\n%s", err, out)
	}
}
