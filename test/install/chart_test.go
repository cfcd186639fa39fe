package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

const chart = "../../deploy/chart/credence"

// helm runs Helm 4, and returns what it printed.
func helm(t *testing.T, kubeconfig string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	return runHelm(t, "helm", kubeconfig, arguments...)
}

// runHelm runs a Helm: helm, or helm3.
func runHelm(t *testing.T, program, kubeconfig string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.Command(controlplane.Program(program), arguments...) // also in a cleanup
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	err = command.Run()
	return out.String(), errors.String(), err
}

// packaged returns the chart as it is shipped.
func packaged(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if stdout, stderr, err := helm(t, "", "package", chart, "--destination", folder); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	files, err := filepath.Glob(filepath.Join(folder, "credence-*.tgz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("packages: %v, %v", files, err)
	}
	return files[0]
}

// template returns the objects of the chart.
func template(t *testing.T, set ...string) []*unstructured.Unstructured {
	t.Helper()
	arguments := []string{"template", "credence", chart, "--namespace", "credence-system", "--kube-version", testkit.Version(t, "KUBERNETES")}
	stdout, stderr, err := helm(t, "", with(arguments, set...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return decoded(stdout)
}

// with adds values to arguments of Helm. A value that begins with dashes is an argument itself.
func with(arguments []string, values ...string) []string {
	for _, each := range values {
		if !strings.HasPrefix(each, "--") {
			arguments = append(arguments, "--set")
		}
		arguments = append(arguments, each)
	}
	return arguments
}

func decoded(text string) (objects []*unstructured.Unstructured) {
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			return objects
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Helm 3 makes the same of the chart as Helm 4, and refuses the same values.
func TestHelm3(t *testing.T) {
	file := packaged(t)
	for _, set := range []string{"issuer=https://id.example.com", "identities.enabled=false,workloads.enabled=false,gmsa.enforcement=Warn", "issuer=http://id.example.com", "isuer=x"} {
		arguments := []string{"template", "credence", file, "--namespace", "credence-system", "--kube-version", testkit.Version(t, "KUBERNETES"), "--set", set}
		want, _, refused := helm(t, "", arguments...)
		have, stderr, err := runHelm(t, "helm3", "", arguments...)
		if (err == nil) != (refused == nil) {
			t.Errorf("%s: %v, with Helm 4 %v\n%s", set, err, refused, stderr)
		}
		// They sort in other ways.
		byID := func(printed string) map[string]any {
			all := map[string]any{}
			for _, o := range decoded(printed) {
				all[id(o)] = o.Object
			}
			return all
		}
		if diff := cmp.Diff(byID(want), byID(have)); diff != "" || err == nil && len(byID(have)) < 20 {
			t.Errorf("%s (-Helm 4 +Helm 3):\n%s", set, diff)
		}
	}
}

func id(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

// The chart and "credence up" install the same objects, but for the processes and the way to them.
func TestChartInstallsTheManifests(t *testing.T) {
	const issuer = "issuer=https://id.example.com"
	for _, c := range []struct {
		name    string
		set     []string
		options []deploy.Option
		report  []string
	}{
		{name: "default", set: []string{issuer}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths}},
		{name: "gMSA options", set: []string{issuer, "gmsa.annotations=true", "gmsa.requireUser=true"}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths, deploy.GMSAAnnotations, deploy.GMSARequireUser}},
		{name: "images by identity", set: []string{issuer, "imageCredentials.audience=https://kubernetes.default.svc.cluster.local"}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths, deploy.ImageCredentials}},
		{name: "passwords of registries", set: []string{issuer, "registry.configMap=registries"}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths, deploy.Registry}},
		{name: "gMSA warns", set: []string{issuer, "gmsa.enforcement=Warn"}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths}, report: []string{"Warn", "Audit"}},
		{name: "gMSA audits", set: []string{issuer, "gmsa.enforcement=Audit"}, options: []deploy.Option{deploy.Registration, deploy.Certificates, deploy.ReviewPaths}, report: []string{"Audit"}},
		{name: "a certificate for reviews", set: []string{issuer, "certificates.reviewer=kube-apiserver-kubelet-client"}, options: []deploy.Option{deploy.Registration, deploy.Certificates}},
		{name: "cert-manager", set: []string{issuer, "certificates.source=cert-manager", "certificates.issuerRef.name=ca"}, options: []deploy.Option{deploy.Registration, deploy.ReviewPaths}},
		{name: "own certificates", set: []string{issuer, "certificates.source=existing"}, options: []deploy.Option{deploy.Registration, deploy.ReviewPaths}},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifests, err := deploy.Manifests(c.options...)
			if err != nil {
				t.Fatal(err)
			}
			if c.report != nil {
				if err := deploy.Reported(manifests, c.report...); err != nil {
					t.Fatal(err)
				}
			}
			installed := map[string]*unstructured.Unstructured{}
			for _, o := range template(t, c.set...) {
				if o.GetAnnotations()["helm.sh/hook"] == "" {
					installed[id(o)] = o
				}
			}
			for _, want := range manifests {
				if want.GetKind() == "Namespace" {
					continue // Helm makes it
				}
				have := installed[id(want)]
				if have == nil {
					t.Errorf("the chart does not install %s", id(want))
					continue
				}
				delete(installed, id(want))
				for name, of := range map[string]func(*unstructured.Unstructured) map[string]string{
					"label": (*unstructured.Unstructured).GetLabels, "annotation": (*unstructured.Unstructured).GetAnnotations,
				} {
					for key, value := range of(want) {
						if of(have)[key] != value {
							t.Errorf("%s has the %s %s=%q, want %q", id(have), name, key, of(have)[key], value)
						}
					}
				}
				bare := func(o *unstructured.Unstructured) map[string]any {
					copied := o.DeepCopy()
					copied.SetLabels(nil)
					copied.SetAnnotations(nil)
					return copied.Object
				}
				// Without certificates of the API server the webhook writes the paths of reviews, so that the chart does not own them.
				webhooks, _, _ := unstructured.NestedSlice(want.Object, "webhooks")
				for _, each := range webhooks {
					unstructured.RemoveNestedField(each.(map[string]any), "clientConfig", "service", "path")
				}
				if webhooks != nil && slices.Contains(c.options, deploy.ReviewPaths) {
					want.Object["webhooks"] = webhooks
				}
				if diff := cmp.Diff(bare(want), bare(have), numbers); diff != "" {
					t.Errorf("%s differs (-up +chart):\n%s", id(want), diff)
				}
			}
			processes := []string{"Certificate", "Deployment", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceQuota", "Service"}
			for _, o := range installed {
				if !slices.Contains(processes, o.GetKind()) {
					t.Errorf("%s is in the chart alone", id(o))
				}
			}
		})
	}
}

// numbers are equal whether they were decoded as whole or not.
var numbers = cmp.FilterValues(func(a, b any) bool { return isNumber(a) && isNumber(b) }, cmp.Comparer(func(a, b any) bool {
	return fmt.Sprint(a) == fmt.Sprint(b)
}))

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// digest is one of an image.
var digest = strings.Repeat("a1", 32)

// Values that can't work are refused before anything is changed, with what to do.
func TestInvalidValues(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
		want string
	}{
		{"no issuer", nil, "--set issuer=https://HOST"},
		{"http", []string{"issuer=http://id.example.com"}, `invalid "http://id.example.com": want https`},
		{"slash", []string{"issuer=https://id.example.com/"}, "want https"},
		{"query", []string{"issuer=https://id.example.com?a=b"}, "want https"},
		{"user", []string{"issuer=https://a@id.example.com"}, "want https"},
		{"another namespace", []string{"issuer=https://id.example.com", "--namespace=other"}, `namespace "other": Credence is installed in credence-system`},
		{"unknown value", []string{"issuer=https://id.example.com", "isuer=x"}, "'isuer'"},
		{"unknown value of a component", []string{"issuer=https://id.example.com", "components.agent.replica=3"}, "replica"},
		{"storage", []string{"issuer=https://id.example.com", "storage.type=sqlite"}, "/storage/type"},
		{"etcd without servers", []string{"issuer=https://id.example.com", "storage.type=etcd"}, "storage.etcd.servers: missing"},
		{"authorities beside those of Credence", []string{"issuer=https://id.example.com", "certificates.caBundle=x"}, "set certificates.source=existing"},
		{"another writer of Credence's authorities", []string{"issuer=https://id.example.com", "certificates.injectionAnnotations.a=b"}, "set certificates.source=existing"},
		{"a copy to where the objects are", []string{"issuer=https://id.example.com", "storage.copyFrom=cluster"}, "storage.copyFrom: cluster is storage.type"},
		{"a copy from an etcd without servers", []string{"issuer=https://id.example.com", "storage.copyFrom=etcd"}, "storage.etcd.servers: missing"},
		{"a copy without identities", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=s", "storage.copyFrom=embedded"}, "storage.copyFrom: the identities are in another cluster"},
		{"cert-manager without an issuer", []string{"issuer=https://id.example.com", "certificates.source=cert-manager"}, "certificates.issuerRef.name: missing"},
		{"agent without identities", []string{"identities.enabled=false"}, "workloads.identityKubeconfigSecret: missing"},
		{"driver without workloads", []string{"issuer=https://id.example.com", "workloads.enabled=false", "node.enabled=true"}, "node.enabled, workloads.delivery: have no effect"},
		{"driver without identities", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=s", "node.enabled=true"}, "another cluster can't verify"},
		{"agent of one cluster", []string{"issuer=https://id.example.com", "node.enabled=true", "node.agentConfigMap=agent"}, "node.agentConfigMap: has no effect"},
		{"agent without a driver", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=s", "node.agentConfigMap=agent"}, "node.agentConfigMap: has no effect"},
		{"delivery without a driver", []string{"issuer=https://id.example.com", "workloads.delivery=csi"}, "set node.enabled=true"},
		{"delivery", []string{"issuer=https://id.example.com", "workloads.delivery=vault"}, "/workloads/delivery"},
		{"images without identities", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=s", "imageCredentials.audience=https://api.example.com"}, "imageCredentials.audience: has no effect"},
		{"images for any audience", []string{"issuer=https://id.example.com", "imageCredentials.audience=*"}, "/imageCredentials/audience"},
		{"registries without workloads", []string{"issuer=https://id.example.com", "workloads.enabled=false", "registry.configMap=registries"}, "registry.configMap: has no effect"},
		{"namespaces without registries", []string{"issuer=https://id.example.com", "registry.namespaces={team}"}, "registry.namespaces: has no effect"},
		{"registries of the installation", []string{"issuer=https://id.example.com", "registry.configMap=registries", "registry.namespaces={team,credence-system}"}, "registry.namespaces: credence-system"},
		{"kubelet's folder", []string{"issuer=https://id.example.com", "node.enabled=true", "node.kubeletDir=/var/lib/kubelet/"}, "/node/kubeletDir"},
		{"Ingress to no discovery server", []string{"issuer=https://id.example.com", "discovery.enabled=false", "discovery.ingress.enabled=true"}, "which discovery.enabled=false leaves out"},
		{"nothing", []string{"identities.enabled=false", "workloads.enabled=false", "gmsa.enabled=false"}, "nothing is enabled"},
		{"gMSA off, and its annotations on", []string{"issuer=https://id.example.com", "gmsa.enabled=false", "gmsa.annotations=true"}, "gmsa.annotations: has no effect"},
		{"gMSA off, and its users checked", []string{"issuer=https://id.example.com", "gmsa.enabled=false", "gmsa.requireUser=true"}, "gmsa.requireUser: has no effect"},
		{"served until it is killed", []string{"issuer=https://id.example.com", "pods.preStopSeconds=40"}, "preStopSeconds: 40 of apiserver"},
		{"one component served until it is killed", []string{"issuer=https://id.example.com", "components.webhook.terminationGracePeriodSeconds=10"}, "preStopSeconds: 10 of webhook"},
		{"four fields of a schedule", []string{"issuer=https://id.example.com", "backup.enabled=true", "backup.schedule=17 3 * *"}, "/backup/schedule"},
		{"keys for no recipient", []string{"issuer=https://id.example.com", "backup.enabled=true", "backup.ring=true"}, "backup.recipients: missing"},
		{"a private key as recipient", []string{"issuer=https://id.example.com", "backup.enabled=true", "backup.recipients={AGE-SECR}"}, "/backup/recipients/0"},
		{"fewer backups than none", []string{"issuer=https://id.example.com", "backup.enabled=true", "backup.keep=-1"}, "/backup/keep"},
		{"a name of a schedule", []string{"issuer=https://id.example.com", "backup.enabled=true", "backup.schedule=@nightly"}, "/backup/schedule"},
		{"an audit log without identities", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=s", "audit.claim=audit"}, "audit.claim: has no effect"},
		{"an audit webhook without identities", []string{"identities.enabled=false", "workloads.enabled=false", "audit.webhookSecret=s"}, "audit.webhookSecret: has no effect"},
		{"one digest for all programs", []string{"issuer=https://id.example.com", "image.tag=v1@sha256:" + digest}, "set image.digests.credence-server="},
		{"a program without a digest", []string{"issuer=https://id.example.com", "image.digests.credence-server=sha256:" + digest, "image.digests.credence=sha256:" + digest}, "image.digests.credence-discovery: missing"},
		{"a digest of no program", []string{"issuer=https://id.example.com", "image.digests.server=sha256:" + digest}, "server"},
		{"a port of root", []string{"issuer=https://id.example.com", "ports.webhook.https=443"}, "/ports/webhook/https"},
		{"a port twice in a pod", []string{"issuer=https://id.example.com", "ports.webhook.https=10250", "ports.webhook.health=10250"}, "10250 is the port of webhook."},
		{"a port twice on a node", []string{"issuer=https://id.example.com", "pods.hostNetwork=true", "ports.webhook.https=10260", "ports.apiserver.https=10260"}, "ports.webhook.https: 10260 is the port of apiserver.https"},
		{"the kubelet's port", []string{"issuer=https://id.example.com", "components.webhook.hostNetwork=true", "ports.webhook.https=10250"}, "ports.webhook.https: 10250 is the port of the kubelet"},
		{"a condition of its own", []string{"issuer=https://id.example.com", "enabled=false"}, "/enabled"},
		{"old cluster", []string{"issuer=https://id.example.com", "--kube-version=1.30.0"}, "kubeVersion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, err := helm(t, "", with([]string{"template", "credence", chart, "--namespace", system}, c.set...)...)
			if err == nil || !strings.Contains(stderr, c.want) {
				t.Errorf("%v, want an error with %q:\n%s", err, c.want, stderr)
			}
		})
	}
}

// The number of pods can be left to an autoscaler, of all components or of one: a Deployment without it keeps what the autoscaler has set.
func TestReplicasOfAnAutoscaler(t *testing.T) {
	for set, without := range map[string][]string{"pods.replicas=null": nil, "components.webhook.replicas=null": {"credence-webhook"}} {
		deployments, budgets := 0, 0
		for _, o := range template(t, "issuer=https://id.example.com", set) {
			switch o.GetKind() {
			case "PodDisruptionBudget":
				budgets++
			case "Deployment":
				deployments++
				replicas, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
				if want := without != nil && !slices.Contains(without, o.GetName()); found != want {
					t.Errorf("%s: %s has %v replicas, want a number: %v", set, o.GetName(), replicas, want)
				}
			}
		}
		if deployments < 8 || budgets != deployments {
			t.Errorf("%s: %d Deployments have %d budgets", set, deployments, budgets)
		}
	}
}

// All that names a port of a pod follows its value: flags, probes, Services, NetworkPolicies and ServiceMonitors.
func TestPorts(t *testing.T) {
	for _, set := range [][]string{
		{"issuer=https://id.example.com", "node.enabled=true", "node.tlsSecretName=tls", "registry.configMap=registries"},
		{"identities.enabled=false", "workloads.identityKubeconfigSecret=identities", "node.enabled=true", "node.agentConfigMap=agent"},
	} {
		set = append(set, "monitoring.serviceMonitors.enabled=true", "networkPolicies.enabled=true")
		printed := func() string { return string(testkit.Need(json.Marshal(template(t, set...)))(t)) }
		want := printed()
		found := 0
		for component, ports := range defaultValues(t)["ports"].(map[string]any) {
			for port, number := range ports.(map[string]any) {
				set = append(set, fmt.Sprintf("ports.%s.%s=1%v", component, port, number))
			}
		}
		have := regexp.MustCompile(`\b1?74[45]\d\b`).ReplaceAllStringFunc(printed(), func(number string) string {
			found++
			return strings.TrimPrefix("-"+number, "-1") // a default that stayed keeps a dash
		})
		if diff := cmp.Diff(want, have); diff != "" || found < 15 {
			t.Errorf("%d places of ports changed (-before +after):\n%s", found, diff)
		}
	}
}

// On OpenShift pods choose no user and no group, and the driver may be privileged. A user that is set stays.
func TestOpenShift(t *testing.T) {
	set := []string{"issuer=https://id.example.com", "node.enabled=true", "backup.enabled=true", "backup.ring=false", "storage.copyFrom=embedded", "registry.configMap=registries"}
	openShift := "--api-versions=security.openshift.io/v1"
	for _, c := range []struct {
		set  []string
		user any
	}{{nil, int64(65532)}, {[]string{"pods.runAsUser=7"}, int64(7)}, {[]string{"pods.runAsUser=null"}, nil}, {[]string{openShift}, nil}, {[]string{openShift, "pods.runAsUser=7"}, int64(7)}} {
		pods, driver := 0, false
		for _, o := range template(t, append(slices.Clone(set), c.set...)...) {
			driver = driver || o.GetKind() == "RoleBinding" && strings.Contains(fmt.Sprint(o.Object["roleRef"]), "system:openshift:scc:privileged")
			spec := podSpec(o)
			if spec == nil || o.GetKind() == "DaemonSet" {
				continue
			}
			pods++
			for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
				if have := spec["securityContext"].(map[string]any)[field]; fmt.Sprint(have) != fmt.Sprint(c.user) {
					t.Errorf("%v: %s has %s %v, want %v", c.set, id(o), field, have, c.user)
				}
			}
		}
		if pods < 12 || driver != slices.Contains(c.set, openShift) {
			t.Errorf("%v: %d objects have pods, the driver may be privileged: %v", c.set, pods, driver)
		}
	}
}

// A chart of others depends on this one, under another name: its global values and its condition work, and a cluster that is too old is refused, which
// Helm itself does not do for dependencies.
func TestAsADependency(t *testing.T) {
	folder := t.TempDir()
	source, err := filepath.Abs(chart)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte(`{apiVersion: v2, name: platform, version: 1.2.3, dependencies: [
		{name: credence, version: ">=0.0.0-0", repository: "file://`+source+`", alias: identities, condition: identities.enabled}]}`), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "values.yaml"), []byte(`{global: {imageRegistry: "mirror.example.com:5000", imagePullSecrets: [one, {name: two}]},
		identities: {enabled: true, issuer: https://id.example.com, image: {pullSecrets: [own]}, node: {enabled: true}}}`), 0o600))
	for _, program := range []string{"helm", "helm3"} {
		run := func(arguments ...string) (stdout, stderr string, err error) {
			return runHelm(t, program, "", append(arguments, "--namespace", system)...)
		}
		if _, stderr, err := run("dependency", "update", folder); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, stderr)
		}
		if _, stderr, err := run("package", folder, "--destination", folder); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, stderr)
		}
		render := []string{"template", "platform", filepath.Join(folder, "platform-1.2.3.tgz"), "--kube-version"}
		stdout, stderr, err := run(append(render, testkit.Version(t, "KUBERNETES"))...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, stderr)
		}
		pods := 0
		for _, o := range decoded(stdout) {
			if spec := podSpec(o); spec != nil {
				pods++
				of := as[corev1.PodSpec](t, &unstructured.Unstructured{Object: spec})
				secrets := []corev1.LocalObjectReference{{Name: "own"}, {Name: "one"}, {Name: "two"}}
				if !strings.HasPrefix(of.Containers[0].Image, "mirror.example.com:5000/credence-id/credence") || !slices.Equal(of.ImagePullSecrets, secrets) {
					t.Errorf("%s: %s has the image %s and %v", program, id(o), of.Containers[0].Image, of.ImagePullSecrets)
				}
			}
		}
		if pods < 9 {
			t.Errorf("%s: %d objects with pods", program, pods)
		}
		if stdout, _, err := run(append(render, testkit.Version(t, "KUBERNETES"), "--set", "identities.enabled=false")...); err != nil || len(decoded(stdout)) > 0 {
			t.Errorf("%s: %v, without the dependency there is\n%s", program, err, stdout)
		}
		if _, stderr, err := run(append(render, "1.32.9")...); err == nil || !strings.Contains(stderr, "kubeVersion: Kubernetes v1.32.9 is not >=1.33.0-0") {
			t.Errorf("%s: %v\n%s", program, err, stderr)
		}
	}
}

// A field that the API server of an old cluster does not know, and so refuses, is left out.
func TestOldCluster(t *testing.T) {
	for version, want := range map[string]bool{"1.34.9": false, "1.35.0": true, "1.35.3-gke.100": true} {
		for _, o := range template(t, "issuer=https://id.example.com", "--kube-version="+version) {
			if _, found, _ := unstructured.NestedBool(o.Object, "spec", "serviceAccountTokenInSecrets"); o.GetKind() == "CSIDriver" && found != want {
				t.Errorf("%s: the field is there: %v", version, found)
			}
		}
	}
}

// The audit log goes to one place that outlives its pod, or to standard output: never to both.
func TestPlaceOfTheAuditLog(t *testing.T) {
	for set, want := range map[string][]string{
		"audit.claim=":                        {"--audit-log-path=-"},
		"audit.claim=a":                       {"--audit-log-path=/audit/$(POD_NAME).log"},
		"audit.webhookSecret=s":               {"--audit-webhook-config-file=/audit-webhook/kubeconfig"},
		"audit.claim=a,audit.webhookSecret=s": {"--audit-log-path=/audit/$(POD_NAME).log", "--audit-webhook-config-file=/audit-webhook/kubeconfig"},
	} {
		var have []string
		for _, o := range template(t, "issuer=https://id.example.com", set) {
			if id(o) != "Deployment credence-system/credence-apiserver" {
				continue
			}
			server := as[corev1.PodSpec](t, &unstructured.Unstructured{Object: podSpec(o)}).Containers[0]
			for _, each := range server.Args {
				if strings.HasPrefix(each, "--audit-") {
					have = append(have, each)
				}
				if strings.Contains(each, "$(POD_NAME)") && (len(server.Env) == 0 || server.Env[0].ValueFrom == nil || server.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.name") {
					t.Errorf("%s: the name of the pod is not set: %+v", set, server.Env)
				}
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-want +have):\n%s", set, diff)
		}
	}
}

// Nodes may request tokens for the audience that is set, and for no other.
func TestAudienceOfNodes(t *testing.T) {
	const audience = "https://api.example.com"
	var granted []string
	for _, o := range template(t, "issuer=https://id.example.com", "imageCredentials.audience="+audience) {
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, rule := range rules {
			if verbs, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "verbs"); slices.Contains(verbs, "request-serviceaccounts-token-audience") {
				resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
				granted = append(granted, resources...)
			}
		}
	}
	if diff := cmp.Diff([]string{audience}, granted); diff != "" {
		t.Error(diff)
	}
}

// Each pod can write to no root, has a limit of memory, and runs as an account of its own, whose token is mounted in this pod alone: all
// of them use the API. TestLifeOfAnInstallation and TestInstallOnANode have the Pod Security Standard "restricted" enforced.
func TestPodsAreConfined(t *testing.T) {
	accounts := map[string]string{} // to what runs as them
	for _, o := range template(t, "issuer=https://id.example.com", "backup.enabled=true", "backup.ring=false", "storage.copyFrom=embedded", "registry.configMap=registries") {
		if mounted, _, _ := unstructured.NestedBool(o.Object, "automountServiceAccountToken"); o.GetKind() == "ServiceAccount" && mounted {
			t.Errorf("%s gives its token to every pod", id(o))
		}
		spec := podSpec(o)
		if spec == nil {
			continue
		}
		account, _, _ := unstructured.NestedString(spec, "serviceAccountName")
		if o.GetKind() == "Job" && account == "credence-backup" {
			continue // the first of the CronJob's: TestBackups
		}
		if before := accounts[account]; before != "" || account == "" || account == "default" {
			t.Errorf("%s runs as the service account %q, and so does %q", id(o), account, before)
		}
		accounts[account] = id(o)
		containers, _, _ := unstructured.NestedSlice(spec, "containers")
		if len(containers) != 1 {
			t.Fatalf("%s has %d containers", id(o), len(containers))
		}
		container := containers[0].(map[string]any)
		if readOnly, _, _ := unstructured.NestedBool(container, "securityContext", "readOnlyRootFilesystem"); !readOnly {
			t.Errorf("%s can write to its root", id(o))
		}
		if limits, _, _ := unstructured.NestedString(container, "resources", "limits", "memory"); limits == "" {
			t.Errorf("%s has no limit of memory", id(o))
		}
	}
	if len(accounts) < 8 {
		t.Errorf("pods run as %v only", accounts)
	}
}

// The driver is in a namespace of its own, where it may be privileged, without a right or a token; and not there unless it is chosen.
func TestDriverOfNodes(t *testing.T) {
	for _, o := range template(t, "issuer=https://id.example.com") {
		if o.GetNamespace() == "credence-node" || o.GetName() == "credence-node" {
			t.Errorf("%s is installed", id(o))
		}
	}
	objects := template(t, "issuer=https://id.example.com", "node.enabled=true", "node.kubeletDir=/data/kubelet", "workloads.delivery=csi")
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetNamespace() == "credence-node" || o.GetName() == "credence-node" {
			found[o.GetKind()] = o
		}
		if strings.Contains(fmt.Sprint(o.Object["subjects"]), "credence-node") {
			t.Errorf("%s gives the driver rights", id(o))
		}
	}
	if len(found) != 4 || found["Namespace"].GetLabels()["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Fatalf("there are %v", found)
	}
	spec := as[corev1.PodSpec](t, &unstructured.Unstructured{Object: podSpec(found["DaemonSet"])})
	container := spec.Containers[0]
	if spec.ServiceAccountName != "credence-node" || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.HostNetwork || spec.HostPID {
		t.Errorf("the pod is %+v", spec)
	}
	for _, v := range spec.Volumes {
		if v.Secret != nil || v.Projected != nil || v.HostPath != nil && v.HostPath.Path != "/data/kubelet/pods" && v.HostPath.Path != "/data/kubelet/plugins_registry" {
			t.Errorf("it has the volume %+v", v)
		}
	}
	for _, m := range container.VolumeMounts {
		if both := m.MountPropagation != nil && *m.MountPropagation == corev1.MountPropagationBidirectional; both != (m.MountPath == "/data/kubelet/pods") {
			t.Errorf("it has the mount %+v", m)
		}
	}
	if !slices.Contains(container.Args, "--kubelet-dir=/data/kubelet") || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("the container is %+v", container)
	}
}

// podSpec returns that of an object which is a pod or makes pods, or nil.
func podSpec(o *unstructured.Unstructured) map[string]any {
	for kind, path := range map[string][]string{
		"Pod": {"spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
		"DaemonSet": {"spec", "template", "spec"}, "Deployment": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"}, "StatefulSet": {"spec", "template", "spec"},
	} {
		if o.GetKind() == kind {
			spec, _, _ := unstructured.NestedMap(o.Object, path...)
			return spec
		}
	}
	return nil
}
