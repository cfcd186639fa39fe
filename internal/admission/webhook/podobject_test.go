package webhook

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

// caseFacts are those of a case of package pods.
type caseFacts struct {
	Account      string
	Missing      bool
	Ephemeral    []string
	RuntimeClass map[string]string
	Identities   []struct {
		Name, Type                   string
		ProviderConfig               json.RawMessage
		Unknown, Deleting, Forbidden bool
	}
	Delivery string
}

func (f caseFacts) decide(pod *corev1.Pod) pods.Result {
	r := pods.Request{Namespace: "orchard", Pod: pod, Ephemeral: f.Ephemeral, RuntimeClassNodes: f.RuntimeClass, Delivery: f.Delivery,
		Adapters: targets.For, Account: pods.Account{Name: f.Account, Exists: !f.Missing}}
	for _, i := range f.Identities {
		r.Account.Identities = append(r.Account.Identities, pods.Identity{
			Name: i.Name, Exists: !i.Unknown, Deleting: i.Deleting, Allowed: !i.Forbidden, Type: i.Type, ProviderConfig: i.ProviderConfig,
		})
	}
	return pods.Decide(r)
}

// A review reads all of a pod but the fields that are left out, and decides as if it had read all.
func TestReviewsReadEnoughOfPods(t *testing.T) {
	cases, err := filepath.Glob("../pods/testdata/*/pod.yaml")
	if err != nil || len(cases) < 50 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	const more = `"command":["c"],"args":["a"],"ports":[{"containerPort":1}],"resources":{"limits":{"cpu":"1"}},"livenessProbe":{"exec":{}},"readinessProbe":{},"startupProbe":null,`
	for _, path := range cases {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			read := func(name string) []byte {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
				testkit.Must(t, err)
				if text, err = yaml.YAMLToJSON(text); err != nil {
					t.Fatal(err)
				}
				return text
			}
			var facts caseFacts
			text := strings.NewReplacer(`"containers":[{`, `"tolerations":[{"key":"k"}],"containers":[{`+more, `"initContainers":[{`, `"initContainers":[{`+more).Replace(string(read("pod.yaml")))
			var whole corev1.Pod
			var part podObject
			for _, err := range []error{json.Unmarshal(read("facts.yaml"), &facts), utiljson.Unmarshal([]byte(text), &whole), utiljson.Unmarshal([]byte(text), &part)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(facts.decide(&whole), facts.decide(part.pod())); diff != "" {
				t.Errorf("decision (-whole +part):\n%s", diff)
			}
			whole.TypeMeta, whole.ObjectMeta, whole.Status = metav1.TypeMeta{}, metav1.ObjectMeta{Annotations: whole.Annotations}, corev1.PodStatus{}
			whole.Spec.Tolerations = nil
			for _, containers := range [][]corev1.Container{whole.Spec.InitContainers, whole.Spec.Containers} {
				for i := range containers {
					c := &containers[i]
					c.Command, c.Args, c.Ports, c.Resources, c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil, corev1.ResourceRequirements{}, nil, nil, nil
				}
			}
			if diff := cmp.Diff(&whole, part.pod()); diff != "" {
				t.Errorf("pod (-whole +part):\n%s", diff)
			}
		})
	}
}

// Code that decides about pods reads no field that reviews leave out.
func TestLeftOutFieldsAreNotRead(t *testing.T) {
	leftOut := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[podSpec](), reflect.TypeFor[podContainer]()} {
		for i := range of.NumField() {
			if of.Field(i).Type == reflect.TypeFor[unread]() {
				leftOut[of.Field(i).Name] = true
			}
		}
	}
	if len(leftOut) != 8 {
		t.Errorf("left out are %v", leftOut)
	}
	for _, folder := range []string{"../pods", "../facts", "../../profile"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files, %v", folder, len(files), err)
		}
		for _, path := range files {
			file := testkit.Need(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
			ast.Inspect(file, func(node ast.Node) bool {
				if selector, ok := node.(*ast.SelectorExpr); ok && leftOut[selector.Sel.Name] && !strings.HasSuffix(path, "_test.go") {
					t.Errorf("%s reads %s, which podObject leaves out", path, selector.Sel.Name)
				}
				return true
			})
		}
	}
}
