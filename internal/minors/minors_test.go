package minors_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/test/testkit"
)

func TestMinors(t *testing.T) {
	known := minors.All()
	answer := func(minor string) []byte { return []byte(`{"major":"1","minor":"` + minor + `"}`) }
	for name, minor := range map[string]int{"KUBERNETES": known.Newest, "KUBERNETES_OLDEST": known.Oldest} {
		if got := testkit.Need(minors.Of(answer(strings.Split(testkit.Version(t, name), ".")[1])))(t); got != minor {
			t.Errorf("minors.yaml has 1.%d, versions.env %s=1.%d", minor, name, got)
		}
	}
	for _, feature := range known.Features {
		last := known.Oldest - 1
		for _, less := range feature.Less {
			if less.Until <= last || less.Until >= known.Newest || less.Means == "" || less.How != "missing" && less.How != "different" {
				t.Errorf("%s: %+v, behind 1.%d", feature.Name, less, last)
			}
			last = less.Until
		}
		if on := feature.On(known.Newest); on != nil {
			t.Errorf("%s is %s on the newest minor", feature.Name, on.How)
		}
	}
	if err := known.Check(known.Oldest - 1); err == nil || !strings.Contains(err.Error(), "needs 1.33 or newer") {
		t.Errorf("an old cluster: %v", err)
	}
	for text, want := range map[string]int{"34": 34, "35+": 35} {
		if got, err := minors.Of(answer(text)); err != nil || got != want {
			t.Errorf("minor %q is %d, %v", text, got, err)
		}
	}
	for _, wrong := range []string{"", "{}", `{"major":"2","minor":"1"}`, `{"major":"1","minor":"x"}`} {
		if got, err := minors.Of([]byte(wrong)); err == nil {
			t.Errorf("%s: minor %d", wrong, got)
		}
	}
}

func TestFieldsThatAMinorDoesNotKnow(t *testing.T) {
	known := minors.All()
	for _, field := range known.Fields {
		for minor, want := range map[int]bool{field.Since - 1: false, field.Since: true} {
			objects := testkit.Need(deploy.Manifests())(t)
			known.Trim(objects, minor)
			found := false
			for _, object := range objects {
				if _, has, _ := unstructured.NestedFieldNoCopy(object.Object, field.Path...); object.GetKind() == field.Kind && has {
					found = true
				}
			}
			if found != want {
				t.Errorf("1.%d: %s has %v: %v, want %v", minor, field.Kind, field.Path, found, want)
			}
		}
	}
}
