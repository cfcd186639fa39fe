package templates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/admission/templates"
	"github.com/credence-id/credence/test/testkit"
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
			w := testkit.Need(templates.Find(of(kind, "", template), nil))(t)
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

func TestRevived(t *testing.T) {
	object := func(kind, metadata string, replicas int) []byte {
		return fmt.Appendf(nil, `{"kind":%q,"metadata":{"name":"x"%s},"spec":{"replicas":%d}}`, kind, metadata, replicas)
	}
	owner := func(uid string) string {
		return `,"ownerReferences":[{"kind":"Deployment","name":"d","uid":"` + uid + `","controller":true}]`
	}
	rollback := func(to string) string { return `,"annotations":{"deprecated.deployment.rollback.to":"` + to + `"}` }
	for name, c := range map[string]struct {
		object, old     []byte
		rollback, grown bool
	}{
		"a rollback":                {object("Deployment", rollback("1"), 1), object("Deployment", "", 1), true, false},
		"another rollback":          {object("Deployment", rollback("2"), 1), object("Deployment", rollback("1"), 1), true, false},
		"a new one that rolls back": {object("Deployment", rollback("1"), 1), nil, true, false},
		"a pause":                   {[]byte(`{"kind":"Deployment","spec":{"paused":true}}`), object("Deployment", "", 1), true, false},
		"paused as before":          {[]byte(`{"kind":"Deployment","spec":{"paused":true}}`), []byte(`{"kind":"Deployment","spec":{"paused":true}}`), false, false},
		"a new one that is paused":  {[]byte(`{"kind":"Deployment","spec":{"paused":true}}`), nil, true, false},
		"the same annotation":       {object("Deployment", rollback("1"), 2), object("Deployment", rollback("1"), 1), false, false},
		"an annotation taken off":   {object("Deployment", "", 2), object("Deployment", rollback("1"), 1), false, false},
		"a Deployment grows":        {object("Deployment", "", 2), object("Deployment", "", 1), false, false},
		"a StatefulSet grows":       {object("StatefulSet", "", 2), object("StatefulSet", "", 1), false, false},
		"a ReplicaSet grows":        {object("ReplicaSet", "", 2), object("ReplicaSet", "", 1), false, true},
		"a ReplicaSet shrinks":      {object("ReplicaSet", "", 1), object("ReplicaSet", "", 2), false, false},
		"a scale from zero":         {object("Scale", "", 1), []byte(`{"kind":"Scale","spec":{}}`), false, true},
		"a controller lost":         {object("ReplicationController", "", 1), object("ReplicationController", owner("a"), 1), false, true},
		"another controller":        {object("ReplicaSet", owner("b"), 1), object("ReplicaSet", owner("a"), 1), false, true},
		"adopted":                   {object("ReplicaSet", owner("a"), 1), object("ReplicaSet", "", 1), false, false},
	} {
		rollback, grown, err := templates.Revived(c.object, c.old)
		if err != nil || rollback != c.rollback || grown != c.grown {
			t.Errorf("%s: %t, %t, %v, want %t, %t", name, rollback, grown, err, c.rollback, c.grown)
		}
	}
	for _, bad := range [][2]string{{"[]", "{}"}, {"{}", "[]"}} {
		if _, _, err := templates.Revived([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
