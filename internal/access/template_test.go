package access_test

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/test/testkit"
)

func TestTemplates(t *testing.T) {
	shipped := testkit.Need(deploy.Manifests())(t)
	for _, text := range []string{"argoproj.io/v1alpha1,rollouts=spec.template", "rollouts.argoproj.io/v1alpha1,rollouts=spec.template"} {
		template, err := access.ParseTemplate(text)
		testkit.Must(t, err)
		objects, err := template.Policy(shipped)
		if err != nil || len(objects) != 4 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		for _, object := range objects {
			json := testkit.Need(object.MarshalJSON())(t)
			for _, word := range []string{"cronjobs", "podtemplates", "jobTemplate", "deployments", access.TemplatesPolicy} {
				if strings.Contains(string(json), word) {
					t.Errorf("%s has %q of the shipped one:\n%s", object.GetName(), word, json)
				}
			}
			if !strings.HasPrefix(object.GetName(), "credence-account-use-rollouts.argoproj.io") {
				t.Errorf("name %s", object.GetName())
			}
		}
	}
	for _, text := range []string{"", "x", "argoproj.io/v1alpha1,rollouts", "argoproj.io/v1alpha1,rollouts=", "argoproj.io/v1alpha1,Rollouts=spec.template", "argoproj.io,rollouts=spec.template",
		"apps/v1,deployments=spec.template", "argoproj.io/v1alpha1,rollouts=spec..template", "argoproj.io/v1alpha1,rollouts=spec.template || true", "argoproj.io/v1alpha1,rollouts/scale=spec"} {
		if template, err := access.ParseTemplate(text); err == nil {
			t.Errorf("%q is taken: %+v", text, template)
		}
	}
}
