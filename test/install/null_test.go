package install

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chart3 "helm.sh/helm/v3/pkg/chart/loader"
	util3 "helm.sh/helm/v3/pkg/chartutil"
	engine3 "helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/testkit"
)

// removed are the values that null takes away, as regular expressions of paths: parts of fields that are passed on as they are, and what an autoscaler
// or the cluster chooses. It maps them to the names of fields, or the kinds of objects, that differ then. No others do.
var removed = map[string][]string{
	`pods replicas`:                          {"replicas"},
	`pods runAsUser`:                         {"runAsUser", "runAsGroup", "fsGroup", "Job"},
	`pods podDisruptionBudget.*`:             {"PodDisruptionBudget"},
	`.* resources (requests|limits)( .*)?`:   {"resources"},
	`.* (nodeSelector|labels) [a-z]+[./_].*`: {"nodeSelector", "labels", "Job"},
}

// A value that is null has the effect of its default, or is refused by its name: no installation is weaker because a value was left out. Both Helms
// render the chart in this process.
func TestNullValues(t *testing.T) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // Helm 4 logs links
	for name, render := range map[string]func(map[string]any) (map[string]string, error){"helm": renderer4(t, testkit.Version(t, "KUBERNETES")), "helm3": renderer3(t)} {
		t.Run(name, func(t *testing.T) {
			some := func() (values map[string]any) {
				testkit.Must(t, yaml.UnmarshalStrict([]byte(`{issuer: https://id.example.com, node: {enabled: true, tlsSecretName: tls}, registry: {configMap: registries}, networkPolicies: {enabled: true},
					monitoring: {serviceMonitors: {enabled: true}, dashboards: {enabled: true}}, discovery: {ingress: {enabled: true}}, backup: {enabled: true, ring: false}}`), &values))
				return values
			}
			want := objectsOf(testkit.Need(render(some()))(t))
			if len(want) < 200 {
				t.Fatalf("there are %d objects only", len(want))
			}
			tried := 0
			for _, path := range paths(defaultValues(t), "") {
				values := some()
				setNull(values, path)
				printed, err := render(values)
				tried++
				keys := slices.Collect(maps.Keys(removed))
				of := slices.IndexFunc(keys, func(each string) bool { return regexp.MustCompile(`^` + each + `$`).MatchString(path) })
				last := path[strings.LastIndex(path, " ")+1:]
				switch {
				case err != nil:
					if !strings.Contains(err.Error(), fmt.Sprintf("missing property '%s'", last)) || of >= 0 {
						t.Errorf("%s=null: %v", path, err)
					}
				case of >= 0:
					have := objectsOf(printed)
					if reflect.DeepEqual(want, have) {
						t.Errorf("%s=null changes nothing", path)
					}
					if left, expected := without(have, removed[keys[of]]), without(want, removed[keys[of]]); !reflect.DeepEqual(left, expected) {
						t.Errorf("%s=null (-default +null):\n%s", path, cmp.Diff(expected, left))
					}
				default:
					t.Errorf("%s=null is not refused (-default +null):\n%s", path, cmp.Diff(want, objectsOf(printed)))
				}
			}
			if tried < 150 {
				t.Errorf("tried %d values only", tried)
			}
		})
	}
}

// The notes have what the cluster has less of, of the same table as doctor.
func TestNotesHaveWhatTheClusterLacks(t *testing.T) {
	const policies = "MutatingAdmissionPolicies of yours about objects of Credence: missing, they change no object of Credence"
	for version, want := range map[string][]string{
		"v1.33.13":        {"Kubernetes 1.33: " + policies, "Kubernetes 1.33: Images pulled by identity (credence-image-credentials): missing"},
		"v1.34.2-gke.100": {"Kubernetes 1.34: " + policies, "Kubernetes 1.34: Images pulled by identity (credence-image-credentials): different"},
		"v1.37.1":         nil,
		"v1.39.0":         {"WARNING: Kubernetes 1.39 is newer than 1.37"},
	} {
		printed := testkit.Need(renderer4(t, version)(map[string]any{"issuer": "https://id.example.com"}))(t)
		notes := printed["credence/templates/NOTES.txt"]
		for _, line := range want {
			if !strings.Contains(notes, line) {
				t.Errorf("%s: the notes are without %q:\n%s", version, line, notes)
			}
		}
		if len(want) == 0 && strings.Contains(notes, "Kubernetes 1.") {
			t.Errorf("%s: the newest lacks something:\n%s", version, notes)
		}
	}
}

// renderer4 returns what renders the chart with values as Helm 4 does, on a version of Kubernetes.
func renderer4(t *testing.T, kubernetes string) func(map[string]any) (map[string]string, error) {
	t.Helper()
	loaded := testkit.Need(loader.LoadDir(chart))(t)
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *testkit.Need(common.ParseKubeVersion(kubernetes))(t)
	return func(values map[string]any) (map[string]string, error) {
		all, err := util.ToRenderValues(loaded, values, common.ReleaseOptions{Name: "credence", Namespace: system, IsInstall: true}, capabilities)
		if err != nil {
			return nil, err
		}
		return engine.Render(loaded, all)
	}
}

// renderer3 returns what renders the chart with values as Helm 3 does.
func renderer3(t *testing.T) func(map[string]any) (map[string]string, error) {
	t.Helper()
	loaded := testkit.Need(chart3.LoadDir(chart))(t)
	capabilities := util3.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *testkit.Need(util3.ParseKubeVersion(testkit.Version(t, "KUBERNETES")))(t)
	return func(values map[string]any) (map[string]string, error) {
		all, err := util3.ToRenderValues(loaded, values, util3.ReleaseOptions{Name: "credence", Namespace: system, IsInstall: true}, capabilities)
		if err != nil {
			return nil, err
		}
		return engine3.Render(loaded, all)
	}
}

// objectsOf returns the objects of rendered templates, by kind and name.
func objectsOf(printed map[string]string) map[string]any {
	all := map[string]any{}
	for file, text := range printed {
		if strings.HasSuffix(file, ".yaml") {
			for _, o := range decoded(text) {
				all[id(o)] = o.Object
			}
		}
	}
	return all
}

// without returns a copy without fields, wherever they are, and without objects of kinds.
func without(value any, names []string) any {
	switch value := value.(type) {
	case map[string]any:
		left := map[string]any{}
		for key, each := range value {
			if kind, _, _ := strings.Cut(key, " "); !slices.Contains(names, kind) {
				left[key] = without(each, names)
			}
		}
		return left
	case []any:
		left := make([]any, len(value))
		for i, each := range value {
			left[i] = without(each, names)
		}
		return left
	}
	return value
}

// setNull sets the value at a path.
func setNull(values map[string]any, path string) {
	name, rest, deeper := strings.Cut(path, " ")
	if !deeper {
		values[name] = nil
		return
	}
	if _, set := values[name]; !set {
		values[name] = map[string]any{}
	}
	setNull(values[name].(map[string]any), rest)
}

// paths returns the paths of all values, and of what they are in and have in them. Names may have dots.
func paths(values map[string]any, below string) (all []string) {
	for name, value := range values {
		path := strings.TrimPrefix(below+" "+name, " ")
		all = append(all, path)
		if fields, ok := value.(map[string]any); ok {
			all = append(all, paths(fields, path)...)
		}
	}
	slices.Sort(all)
	return all
}
