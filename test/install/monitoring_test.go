package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const monitoring = "../../deploy/monitoring"

// as decodes an object into its type, which must know all its fields.
func as[T any](t *testing.T, o *unstructured.Unstructured) T {
	t.Helper()
	var into T
	text, err := yaml.Marshal(o.Object)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &into)
	}
	if err != nil {
		t.Fatalf("%s: %v", id(o), err)
	}
	return into
}

func kind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// Nothing of monitoring is installed unless it is chosen: a cluster without the Prometheus operator has none of its kinds.
func TestMonitoringIsOffByDefault(t *testing.T) {
	for _, o := range template(t, "issuer=https://id.example.com") {
		if strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") || strings.HasSuffix(o.GetName(), "-dashboard") || strings.HasSuffix(o.GetName(), "-metrics") {
			t.Errorf("%s is installed", id(o))
		}
	}
}

// Each program is scraped over TLS, with authorization, on the port of its metrics, under the name that the alerts expect.
func TestServiceMonitors(t *testing.T) {
	objects := template(t, "issuer=https://id.example.com", "registry.configMap=registries", "monitoring.serviceMonitors.enabled=true", "monitoring.labels.release=prometheus")
	monitors := kind(objects, "ServiceMonitor")
	deployments := kind(objects, "Deployment")
	if len(monitors) != len(deployments) || len(monitors) < 7 {
		t.Errorf("%d ServiceMonitors of %d Deployments", len(monitors), len(deployments))
	}
	for _, o := range monitors {
		monitor := as[monitoringv1.ServiceMonitor](t, o)
		if monitor.Labels["release"] != "prometheus" || len(monitor.Spec.Endpoints) != 1 || monitor.Spec.NamespaceSelector.MatchNames[0] != "credence-system" {
			t.Fatalf("%s: %+v", id(o), monitor)
		}
		endpoint := monitor.Spec.Endpoints[0]
		var services []corev1.Service
		for _, service := range kind(objects, "Service") {
			if service := as[corev1.Service](t, service); contains(service.Labels, monitor.Spec.Selector.MatchLabels) {
				services = append(services, service)
			}
		}
		if len(services) != 1 || len(services[0].Spec.Ports) != 1 || services[0].Spec.Ports[0].Name != endpoint.Port {
			t.Fatalf("%s selects the Services %+v", id(o), services)
		}
		var ports []string
		for _, deployment := range deployments {
			pod := as[appsv1.Deployment](t, deployment).Spec.Template
			if !contains(pod.Labels, services[0].Spec.Selector) {
				continue
			}
			if deployment.GetName() != monitor.Name {
				t.Errorf("%s scrapes the pods of %s", id(o), deployment.GetName())
			}
			for _, port := range pod.Spec.Containers[0].Ports {
				ports = append(ports, port.Name)
			}
			if probe := pod.Spec.Containers[0].ReadinessProbe; probe.HTTPGet.Port != services[0].Spec.Ports[0].TargetPort {
				t.Errorf("%s scrapes the port %s, and the health is on %s", id(o), services[0].Spec.Ports[0].TargetPort.String(), probe.HTTPGet.Port.String())
			}
		}
		if !slices.Contains(ports, services[0].Spec.Ports[0].TargetPort.StrVal) {
			t.Errorf("%s scrapes the port %s, pods have %v", id(o), services[0].Spec.Ports[0].TargetPort.StrVal, ports)
		}
		if *endpoint.Scheme != "https" || tokenFile(endpoint) == "" || endpoint.TLSConfig.CA.Secret.Name != monitor.Name+"-tls" || *endpoint.TLSConfig.ServerName != monitor.Name+".credence-system.svc" || endpoint.TLSConfig.InsecureSkipVerify != nil {
			t.Errorf("%s: %+v", id(o), endpoint)
		}
		if relabel := endpoint.RelabelConfigs[0]; relabel.TargetLabel != "job" || *relabel.Replacement != monitor.Name {
			t.Errorf("%s: %+v", id(o), relabel)
		}
	}
	for _, o := range kind(template(t, "issuer=https://id.example.com", "monitoring.serviceMonitors.enabled=true", "monitoring.serviceMonitors.tokenSecret=reader"), "ServiceMonitor") {
		if endpoint := as[monitoringv1.ServiceMonitor](t, o).Spec.Endpoints[0]; tokenFile(endpoint) != "" || endpoint.Authorization.Credentials.Name != "reader" {
			t.Errorf("%s with a token of its own: %+v", id(o), endpoint)
		}
	}
}

// The driver of nodes is scraped where it has a certificate, in its own namespace, and has probes there.
func TestMetricsOfTheDriver(t *testing.T) {
	set := []string{"issuer=https://id.example.com", "node.enabled=true", "monitoring.serviceMonitors.enabled=true"}
	for _, o := range template(t, set...) {
		if o.GetNamespace() == "credence-node" && !slices.Contains([]string{"DaemonSet", "ServiceAccount", "ResourceQuota"}, o.GetKind()) {
			t.Errorf("without a certificate there is %s", id(o))
		}
	}
	objects := template(t, append(set, "node.tlsSecretName=driver-tls")...)
	inNamespace := func(of string) *unstructured.Unstructured {
		for _, o := range kind(objects, of) {
			if o.GetNamespace() == "credence-node" {
				return o
			}
		}
		t.Fatalf("there is no %s", of)
		return nil
	}
	monitor, service := as[monitoringv1.ServiceMonitor](t, inNamespace("ServiceMonitor")), as[corev1.Service](t, inNamespace("Service"))
	pod := as[appsv1.DaemonSet](t, inNamespace("DaemonSet")).Spec.Template
	endpoint, container := monitor.Spec.Endpoints[0], pod.Spec.Containers[0]
	if !contains(service.Labels, monitor.Spec.Selector.MatchLabels) || !contains(pod.Labels, service.Spec.Selector) || monitor.Spec.NamespaceSelector.MatchNames[0] != "credence-node" {
		t.Errorf("the ServiceMonitor %+v does not find the pods", monitor.Spec)
	}
	if port := service.Spec.Ports[0]; port.Name != endpoint.Port || port.TargetPort.StrVal != container.Ports[0].Name || container.ReadinessProbe.HTTPGet.Port.StrVal != container.Ports[0].Name {
		t.Errorf("the Service has the port %+v, the container %+v", port, container.Ports)
	}
	if *endpoint.Scheme != "https" || tokenFile(endpoint) == "" || endpoint.TLSConfig.CA.Secret.Name != "driver-tls" || *endpoint.TLSConfig.ServerName != "credence-node.credence-node.svc" || endpoint.TLSConfig.InsecureSkipVerify != nil {
		t.Errorf("%+v", endpoint)
	}
	if !slices.Contains(container.Args, "--health-port=7453") || container.LivenessProbe == nil {
		t.Errorf("the container is %+v", container)
	}
}

// tokenFile is the file of the token of Prometheus' own service account: what took its place knows only Secrets.
func tokenFile(endpoint monitoringv1.Endpoint) string {
	return endpoint.BearerTokenFile //lint:ignore SA1019 see above
}

func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// The PrometheusRule is the rules file, without alerts on the absence of what another cluster has.
func TestPrometheusRule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(monitoring, "credence.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  []string
		gone []string
	}{
		{"all", []string{"issuer=https://id.example.com", "registry.configMap=registries"}, nil},
		{"identities", []string{"issuer=https://id.example.com", "workloads.enabled=false", "gmsa.enabled=false"}, []string{
			"CredenceAgentAbsent", "CredenceWebhookAbsent", "CredenceBinderAbsent", "CredenceProfilesAbsent", "CredenceRegistryAbsent",
		}},
		{"workloads", []string{"identities.enabled=false", "workloads.identityKubeconfigSecret=k"}, []string{"CredenceAPIServerAbsent", "CredenceControllerAbsent", "CredenceDiscoveryAbsent", "CredenceRegistryAbsent"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := kind(template(t, append(c.set, "monitoring.prometheusRule.enabled=true")...), "PrometheusRule")
			if len(found) != 1 {
				t.Fatalf("%d PrometheusRules", len(found))
			}
			want := file.DeepCopy()
			for i := range want.Groups {
				want.Groups[i].Rules = slices.DeleteFunc(want.Groups[i].Rules, func(rule monitoringv1.Rule) bool { return slices.Contains(c.gone, rule.Alert) })
			}
			if diff := cmp.Diff(*want, as[monitoringv1.PrometheusRule](t, found[0]).Spec); diff != "" {
				t.Errorf("-file +chart:\n%s", diff)
			}
		})
	}
}

// Each dashboard is a ConfigMap that Grafana's sidecar finds.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(monitoring, "*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	maps := map[string]corev1.ConfigMap{}
	for _, o := range kind(template(t, "issuer=https://id.example.com", "monitoring.dashboards.enabled=true", "monitoring.dashboards.annotations.grafana_folder=Credence"), "ConfigMap") {
		maps[o.GetName()] = as[corev1.ConfigMap](t, o)
	}
	for _, path := range files {
		name := filepath.Base(path)
		found := maps[strings.TrimSuffix(name, ".json")+"-dashboard"]
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(found.Data[name]) != strings.TrimSpace(string(want)) {
			t.Errorf("the ConfigMap of %s has another text", name)
		}
		if found.Labels["grafana_dashboard"] != "1" || found.Annotations["grafana_folder"] != "Credence" {
			t.Errorf("the ConfigMap of %s: %v, %v", name, found.Labels, found.Annotations)
		}
	}
}

// The two components that send spans get the file of their ConfigMap, and the others get nothing.
func TestTracing(t *testing.T) {
	traced := map[string]bool{}
	for _, object := range kind(template(t, "issuer=https://id.example.com", "monitoring.tracing.configMap=spans"), "Deployment") {
		deployment := as[appsv1.Deployment](t, object)
		container := deployment.Spec.Template.Spec.Containers[0]
		mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tracing" && m.ReadOnly })
		from := slices.ContainsFunc(deployment.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.ConfigMap != nil && v.ConfigMap.Name == "spans" && v.ConfigMap.Items[0].Path == "tracing.yaml"
		})
		argument := slices.Contains(container.Args, "--tracing-config-file=/tracing/tracing.yaml")
		if mounted != argument || from != argument {
			t.Errorf("%s: argument %v, mounted %v, volume %v", deployment.Name, argument, mounted, from)
		}
		traced[deployment.Name] = argument
	}
	for name, argument := range traced {
		if want := name == "credence-apiserver" || name == "credence-webhook"; argument != want {
			t.Errorf("%s: traced %v", name, argument)
		}
	}
	if len(traced) < 6 {
		t.Errorf("Deployments: %v", traced)
	}
}
