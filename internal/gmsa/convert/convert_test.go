package convert_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/credence-id/credence/internal/gmsa/convert"
	"github.com/credence-id/credence/test/testkit"
)

// TestCases converts what each case has, and back where it has the way back.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		archive := testkit.Need(txtar.ParseFile(file))(t)
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			check := func(from, to string, form convert.Form) {
				t.Helper()
				result, problems, err := convert.Text([]byte(files[from]), form)
				if err != nil || len(problems) > 0 {
					t.Fatalf("%s: %+v %v", from, problems, err)
				}
				if diff := cmp.Diff(files[to], string(result.Text)); diff != "" {
					t.Errorf("%s to %s (-want +got):\n%s", from, form, diff)
				}
				if again, _, err := convert.Text(result.Text, form); err != nil || again.Moved != 0 || string(again.Text) != string(result.Text) {
					t.Errorf("%s: a second time something moves: %+v, %v", to, again, err)
				}
			}
			if files["annotations"] != "" {
				check("annotations", "fields", convert.Fields)
			}
			// The same with the line breaks of Windows.
			for _, name := range []string{"annotations", "fields", "back"} {
				files[name+" windows"] = strings.ReplaceAll(files[name], "\n", "\r\n")
			}
			check("annotations windows", "fields windows", convert.Fields)
			if back, ok := files["back"]; ok {
				if back == "" {
					files["back"] = files["annotations"]
				}
				check("fields", "back", convert.Annotations)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	const (
		podName = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
		webName = "web.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
		head    = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n---\n"
	)
	for name, test := range map[string]struct {
		text   string
		to     convert.Form
		line   int
		path   string
		reason string
	}{
		"both and different": {
			"kind: Pod\nmetadata:\n  annotations:\n    " + podName + ": a\nspec:\n  securityContext:\n    windowsOptions:\n      gmsaCredentialSpecName: b\n", convert.Fields,
			4, "metadata.annotations[" + podName + "]", "spec.securityContext.windowsOptions.gmsaCredentialSpecName has another value, in line 9",
		},
		"both and different, in the second document": {
			head + "kind: Pod\nmetadata:\n  annotations:\n    " + podName + ": a\nspec:\n  securityContext:\n    windowsOptions:\n      gmsaCredentialSpecName: b\n", convert.Annotations,
			12, "spec.securityContext.windowsOptions.gmsaCredentialSpecName", "has another value, in line 9",
		},
		"no such container": {
			"kind: Pod\nmetadata:\n  annotations: {" + webName + ": a}\nspec:\n  containers: [{name: app}]\n", convert.Fields,
			3, "metadata.annotations[" + webName + "]", `the annotation is for container "web", which the object does not have`,
		},
		"no spec":                  {"kind: Pod\nmetadata:\n  annotations: {" + podName + ": a}\n", convert.Fields, 3, "metadata.annotations[" + podName + "]", "the spec of the pod"},
		"two containers":           {"kind: Pod\nmetadata:\n  annotations: {" + webName + ": a}\nspec: {containers: [{name: web}, {name: web}]}\n", convert.Fields, 3, "metadata.annotations[" + webName + "]", "of which there are 2"},
		"annotation is not text":   {"kind: Pod\nmetadata:\n  annotations: {" + podName + ": [a]}\nspec: {}\n", convert.Fields, 3, "metadata.annotations[" + podName + "]", "is not text"},
		"context is not an object": {"kind: Pod\nmetadata:\n  annotations: {" + podName + ": a}\nspec: {securityContext: [x]}\n", convert.Fields, 4, "spec.securityContext", "is not an object"},
		"container without name":   {"kind: Pod\nspec: {containers: [{securityContext: {windowsOptions: {gmsaCredentialSpecName: a}}}]}\n", convert.Annotations, 2, "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName", "has no name"},
		"containers of one name": {
			"kind: Pod\nspec:\n  containers:\n  - {name: a}\n  - {name: a, securityContext: {windowsOptions: {gmsaCredentialSpecName: a}}}\n", convert.Annotations,
			5, "spec.containers[1].securityContext.windowsOptions.gmsaCredentialSpecName", "several containers",
		},
		"shared by an anchor": {
			"kind: Pod\nspec:\n  containers:\n  - name: a\n    securityContext: &c {windowsOptions: {gmsaCredentialSpecName: a}}\n  - {name: b, securityContext: *c}\n", convert.Annotations,
			5, "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName", "shared",
		},
		"shared by a merge": {
			"kind: Pod\nmetadata:\n  annotations:\n    <<: &a {" + podName + ": x}\n  labels: *a\nspec: {}\n", convert.Fields,
			4, "metadata.annotations[" + podName + "]", "shared",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, problems, err := convert.Text([]byte("apiVersion: v1\n"+test.text), test.to)
			if err != nil || result != nil || len(problems) == 0 {
				t.Fatalf("%+v, %+v, %v", result, problems, err)
			}
			p := problems[0]
			if p.Line != test.line+1 || p.Path != test.path || !strings.Contains(p.Reason, test.reason) || p.Fix == "" || p.Column < 1 {
				t.Errorf("%+v, want line %d, %s: %s", p, test.line+1, test.path, test.reason)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, text := range map[string]string{
		"cut":            "kind: \"Pod",
		"key twice":      "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name: a\n    pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name: b\nspec: {}\n",
		"odd separation": "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name: a\nspec: {}\n--- {kind: Pod}\n",
	} {
		if result, problems, err := convert.Text([]byte(text), convert.Fields); err == nil {
			t.Errorf("%s: %+v, %+v", name, result, problems)
		}
	}
}

// TestOtherKinds: objects of unknown kinds stay as they are, and are reported if they mention gMSAs.
func TestOtherKinds(t *testing.T) {
	const text = "kind: Service\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:  {template: {spec: {securityContext: {windowsOptions: {gmsaCredentialSpecName: x}}}}}\n---\n"
	result, problems, err := convert.Text([]byte(text), convert.Annotations)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	want := &convert.Result{Text: []byte(text), PassedOver: []string{"line 3: Rollout web"}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
}

// randomPod is a pod with annotations of some of its levels, in the manner of a person.
func randomPod(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var text strings.Builder
	text.WriteString(pick("# a pod\n", "\n", "") + "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n")
	containers := []string{"web", "log", "pod", "a.b"}[:1+r.IntN(4)]
	var annotations []string
	for _, level := range append([]string{"pod"}, containers...) {
		key := "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
		if len(annotations) > 0 || r.IntN(2) == 0 {
			key = level + ".container.alpha.windows.kubernetes.io/gmsa-credential-spec"
		}
		if level == "pod" && !strings.Contains(strings.Join(containers, " "), "pod") {
			key = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
		}
		if r.IntN(2) == 0 {
			annotations = append(annotations, "    "+key+"-name: "+pick("spec-a", `"spec-b"`, "'123'", "spec-c # why")+"\n")
		}
		if r.IntN(3) == 0 {
			annotations = append(annotations, "    "+key+": "+pick(`'{"a":1}'`, `"{}"`, "|\n      {\n      }", ">-\n      {\"a\":\n      2}")+"\n")
		}
	}
	if len(annotations) > 0 {
		seen := map[string]bool{}
		text.WriteString("  annotations:\n    other: x\n")
		for _, annotation := range annotations {
			if key, _, _ := strings.Cut(annotation, ": "); !seen[key] {
				seen[key] = true
				text.WriteString(pick("    # comment\n", "\n", "") + annotation)
			}
		}
	}
	text.WriteString(pick("\n", "") + "spec:\n" + pick("", "  securityContext: {runAsNonRoot: true}\n", "  securityContext:\n    windowsOptions:\n      runAsUserName: x\n") + "  containers:\n")
	for _, container := range containers {
		indent := "  "
		fmt.Fprintf(&text, "%s- name: %s\n%s  image: i%s\n%s", indent, container, indent, pick("", " # image"), pick("", "\n", "    # end\n"))
	}
	return text.String()
}

// TestRoundTrip: there and back, a manifest means the same, and no comment is lost.
func TestRoundTrip(t *testing.T) {
	moved := 0
	for seed := range uint64(500) {
		text := randomPod(rand.New(rand.NewPCG(seed, 1)))
		fields, problems, err := convert.Text([]byte(text), convert.Fields)
		if err != nil || len(problems) > 0 {
			t.Fatalf("seed %d: %+v %v:\n%s", seed, problems, err, text)
		}
		moved += fields.Moved
		if strings.Contains(string(fields.Text), "alpha.windows") {
			t.Fatalf("seed %d: an annotation is left:\n%s", seed, fields.Text)
		}
		back, problems, err := convert.Text(fields.Text, convert.Annotations)
		if err != nil || len(problems) > 0 {
			t.Fatalf("seed %d, back: %+v %v:\n%s", seed, problems, err, fields.Text)
		}
		if back.Moved != fields.Moved {
			t.Fatalf("seed %d: %d there, %d back", seed, fields.Moved, back.Moved)
		}
		var before, after any
		if err := yaml.Unmarshal([]byte(text), &before); err != nil {
			t.Fatalf("seed %d: %v:\n%s", seed, err, text)
		}
		if err := yaml.Unmarshal(back.Text, &after); err != nil {
			t.Fatalf("seed %d: %v:\n%s", seed, err, back.Text)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("seed %d: there and back differs:\n%s\n%s\n%s\n%s", seed, diff, text, fields.Text, back.Text)
		}
		for _, comment := range []string{"# a pod", "# comment", "# why", "# image", "# end"} {
			if was, is := strings.Count(text, comment), strings.Count(string(back.Text), comment); was != is {
				t.Fatalf("seed %d: %q was there %d times and is %d times:\n%s\n%s", seed, comment, was, is, text, back.Text)
			}
		}
	}
	if moved < 300 {
		t.Errorf("only %d values moved: the test has lost its subject", moved)
	}
}

func FuzzText(f *testing.F) {
	cases, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range cases {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			f.Add(part.Data, part.Name == "annotations")
		}
	}
	f.Add([]byte("kind: Pod\nspec: &a {containers: [*a], <<: *a}\n"), true)
	f.Add([]byte(randomPod(rand.New(rand.NewPCG(1, 1)))), true)
	f.Fuzz(func(t *testing.T, text []byte, toFields bool) {
		form := convert.Annotations
		if toFields {
			form = convert.Fields
		}
		result, problems, err := convert.Text(text, form)
		for _, problem := range problems {
			if problem.Line < 1 || problem.Line > 1+strings.Count(string(text), "\n") || problem.Path == "" {
				t.Errorf("%+v of %q", problem, text)
			}
		}
		if err != nil || len(problems) > 0 {
			return
		}
		if result.Moved == 0 && string(result.Text) != string(text) {
			t.Errorf("nothing moved, and the text has changed: %q to %q", text, result.Text)
		}
		again, problems, err := convert.Text(result.Text, form)
		if err != nil || len(problems) > 0 || again.Moved != 0 {
			t.Errorf("a second time, %+v %+v %v: %q to %q", again, problems, err, text, result.Text)
		}
	})
}
