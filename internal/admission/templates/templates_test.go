package templates_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/admission/templates"
)

const template = `{"metadata":{"annotations":{"a":"b"}},"spec":{"serviceAccountName":"app","containers":[{"name":"main","later":1}]}}`

func of(kind, metadata, template string) []byte {
	spec := `{"template":` + template + `}`
	if kind == "CronJob" {
		spec = `{"schedule":"@daily","jobTemplate":{"spec":` + spec + `}}`
	}
	return []byte(`{"kind":"` + kind + `","metadata":{"name":"fruit","namespace":"orchard"` + metadata + `},"spec":` + spec + `}`)
}

func TestFind(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet"} {
		t.Run(kind, func(t *testing.T) {
			w, err := templates.Find(of(kind, "", template), nil)
			if err != nil {
				t.Fatal(err)
			}
			if w.Kind != kind || w.Name != "fruit" || w.Pod.Namespace != "orchard" || w.Pod.Annotations["a"] != "b" || w.Pod.Spec.ServiceAccountName != "app" || len(w.Pod.Spec.Containers) != 1 {
				t.Errorf("%+v", w)
			}
			for name, object := range map[string][]byte{
				"same template": of(kind, `,"labels":{"x":"y"}`, template),
				"made by another": of(kind, `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"u","controller":true}]`,
					strings.Replace(template, "app", "other", 1)),
			} {
				if w, err := templates.Find(object, of(kind, "", template)); w != nil || err != nil {
					t.Errorf("%s: %+v, %v, want nothing", name, w, err)
				}
			}
			changed := strings.Replace(template, `"serviceAccountName":"app",`, "", 1)
			if w, err := templates.Find(of(kind, "", changed), of(kind, "", template)); err != nil || w == nil || w.Pod.Spec.ServiceAccountName != "default" {
				t.Errorf("changed: %+v, %v", w, err)
			}
		})
	}
	for _, bad := range []string{"", "[]", `{"spec":{"template":7}}`} {
		if w, err := templates.Find([]byte(bad), nil); err == nil {
			t.Errorf("%s: %+v, want an error", bad, w)
		}
	}
}

func TestWarnings(t *testing.T) {
	w := &templates.Workload{Kind: "Job", Name: "fruit"}
	if got := w.Warnings(pods.Result{Warnings: []string{"w"}}); !slices.Equal(got, []string{"w"}) {
		t.Errorf("%q", got)
	}
	got := w.Warnings(pods.Result{Denial: &pods.Denial{Message: "why"}})
	if want := []string{"pods of Job fruit will be refused: why"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
