package install

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// Each value ends where it belongs, where the defaults have something else, and an API server takes what comes of it.
func TestValues(t *testing.T) {
	authority := testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil).PEM()
	quoted, err := json.Marshal(string(authority))
	if err != nil {
		t.Fatal(err)
	}
	of := strings.NewReplacer("AUTHORITY_IN_BASE64", base64.StdEncoding.EncodeToString(authority), "AUTHORITY", string(quoted))
	defaults := rendered(t, "issuer: https://default.example.com")
	tried := map[string]bool{}
	for _, o := range defaults { // TestLifeOfAnInstallation installs them
		tried[fmt.Sprint(o.Object)] = true
	}
	kubeconfig := clusterForValues(t)
	missing := leaves(defaultValues(t), "")
	for _, e := range examples {
		for _, p := range e.placed {
			missing = slices.DeleteFunc(missing, func(leaf string) bool { return leaf == p.value })
		}
	}
	for _, leaf := range missing {
		t.Errorf("no example places the value %s", leaf)
	}
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			text := of.Replace(e.values)
			var set map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
				t.Fatal(err)
			}
			objects := rendered(t, text)
			for _, p := range e.placed {
				if !isSet(set, p.value) {
					t.Errorf("%s is placed, and not set", p.value)
				}
				where := slices.DeleteFunc(slices.Sorted(maps.Keys(objects)), func(name string) bool { return p.object != name && p.object != "all" })
				if p.has == "" {
					if defaults[p.object] == nil || len(where) > 0 {
						t.Errorf("%s: %s is installed, or is not by default", p.value, p.object)
					}
					continue
				}
				var want map[string]any
				if err := yaml.UnmarshalStrict([]byte(of.Replace(p.has)), &want); err != nil {
					t.Fatalf("%s: %v in %s", p.value, err, p.has)
				}
				if len(where) == 0 {
					t.Errorf("%s: %s is not installed", p.value, p.object)
				}
				for _, name := range where {
					if have := objects[name]; !within(want, have.Object) {
						text, _ := yaml.Marshal(have.Object)
						t.Errorf("%s: %s does not have %s:\n%s", p.value, name, p.has, text)
					}
					if unset := defaults[name]; unset != nil && within(want, unset.Object) {
						t.Errorf("%s: %s has %s by default", p.value, name, p.has)
					}
				}
			}
			accepted(t, kubeconfig, objects, tried, e.onNode)
		})
	}
}

// rendered returns the objects of the chart with values, by kind and name. None has a key twice.
func rendered(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := helm(t, "", "template", "credence", chart, "--namespace", system, "--kube-version", testkit.Version(t, "KUBERNETES"), "--values", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(stdout, -1) {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Errorf("%v in\n%s", err, document)
		}
		if len(o.Object) > 0 {
			name := o.GetKind() + " " + o.GetName()
			if objects[name] != nil { // in another namespace
				name += " of " + o.GetNamespace()
			}
			objects[name] = o
		}
	}
	return objects
}

// clusterForValues starts an API server with the kinds of the Gateway API and of cert-manager that the chart has.
func clusterForValues(t *testing.T) (kubeconfig string) {
	t.Helper()
	folder := t.TempDir()
	cluster, err := controlplane.Start(t.Context(), folder, "--port", "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	kubeconfig = filepath.Join(folder, "admin.kubeconfig")
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api", "github.com/cert-manager/cert-manager")
	list.Dir = "certmanager"
	out, err := list.Output()
	modules := strings.Fields(string(out))
	if err != nil || len(modules) != 2 {
		t.Fatalf("modules: %v, %q", err, modules)
	}
	for _, arguments := range [][]string{
		{"create", "namespace", "credence-node"},
		{"create", "namespace", system},
		{"label", "namespace", system, "pod-security.kubernetes.io/warn=restricted"},
		{"apply", "--server-side", "-f", filepath.Join(modules[0], "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"), "-f", filepath.Join(modules[1], "deploy", "crds", "cert-manager.io_certificates.yaml")},
		{"wait", "--for=jsonpath={.status.acceptedNames.listKind}", "--timeout=5m", "crd/httproutes.gateway.networking.k8s.io", "crd/certificates.cert-manager.io"}, // without conditions yet, the next line would fail
		{"wait", "--for=condition=Established", "--timeout=5m", "crd/httproutes.gateway.networking.k8s.io", "crd/certificates.cert-manager.io"},
	} {
		runProgram(t, kubernetes.NewForConfigOrDie(cluster.Admin), kubeconfig, "kubectl", arguments...)
	}
	return kubeconfig
}

// accepted has the API server try all objects that it has not tried before.
func accepted(t *testing.T, kubeconfig string, objects map[string]*unstructured.Unstructured, tried map[string]bool, onNode bool) {
	t.Helper()
	var items []any
	for _, o := range objects {
		switch o.GetKind() {
		case "WorkloadIdentity": // of the API server that is installed
		case "ServiceMonitor", "PrometheusRule": // monitoring_test.go decodes them
		case "Pod": // its service account is not there: "helm test" creates both, in TestPartsOnANode
		default:
			if text := fmt.Sprint(o.Object); !tried[text] {
				tried[text], items = true, append(items, o.Object)
			}
		}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), controlplane.Program("kubectl"), "--kubeconfig", kubeconfig, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
	command.Stdin = bytes.NewReader(text)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if done := strings.Count(string(out), "serverside-applied"); done != len(items) {
		t.Errorf("%d of %d objects were tried:\n%s", done, len(items), out)
	}
	if strings.Contains(string(out), "would violate PodSecurity") != onNode {
		t.Errorf("pods that the Pod Security Standard restricted forbids, want %v:\n%s", onNode, out)
	}
}

// within reports whether all that is wanted is there. An element of a list may be anywhere in it.
func within(want, have any) bool {
	switch want := want.(type) {
	case nil:
		return have == nil
	case map[string]any:
		fields, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && within(value, fields[key])
		}
		return ok
	case []any:
		list, ok := have.([]any)
		for _, each := range want {
			ok = ok && slices.ContainsFunc(list, func(one any) bool { return within(each, one) })
		}
		return ok
	}
	return have != nil && fmt.Sprint(want) == fmt.Sprint(have)
}

func defaultValues(t *testing.T) (all map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// whole are the names of values whose defaults have fields that are not values of their own.
var whole = []string{"labels", "nodeSelector", "podDisruptionBudget", "ports", "resources"}

// leaves returns the paths of all values.
func leaves(values map[string]any, below string) (paths []string) {
	for name, value := range values {
		path := strings.TrimPrefix(below+"."+name, ".")
		if fields, ok := value.(map[string]any); ok && len(fields) > 0 && !slices.Contains(whole, name) {
			paths = append(paths, leaves(fields, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func isSet(values map[string]any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	value, set := values[name]
	if fields, ok := value.(map[string]any); ok && deeper {
		return isSet(fields, rest)
	}
	return set && !deeper
}

// Each value has a comment of its own, above it.
func TestValuesHaveComments(t *testing.T) {
	file := filepath.Join(chart, "values.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	setting := regexp.MustCompile(`^( *)([A-Za-z]+):( .*)?$`)
	before, inside, found := "", "", 0
	for line := range strings.Lines(string(text)) {
		parts := setting.FindStringSubmatch(strings.TrimRight(line, "\n"))
		commented := regexp.MustCompile(`^ *# `).MatchString(before)
		before = line
		if parts == nil || inside != "" && strings.HasPrefix(line, inside+" ") {
			continue
		}
		inside = ""
		if slices.Contains(whole, parts[2]) {
			inside = parts[1] + " "
		}
		if inside == "" && parts[3] == "" {
			continue // a name of values
		}
		if found++; !commented {
			t.Errorf("%s has no comment above %s", file, strings.TrimSpace(line))
		}
	}
	if want := len(leaves(defaultValues(t), "")); found != want {
		t.Errorf("found %d values, want %d", found, want)
	}
}
