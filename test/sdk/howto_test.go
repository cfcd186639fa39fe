package sdk

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

// The how-to of each cloud declares an identity that its adapter takes, and names every file and variable that pods get.
func TestHowtos(t *testing.T) {
	for _, c := range clouds() {
		t.Run(c.String(), func(t *testing.T) {
			content := testkit.Need(os.ReadFile("../../docs/howto/" + c.name + ".md"))(t)
			_, declared, found := strings.Cut(string(content), "<<EOF\n")
			declared, _, closed := strings.Cut(declared, "\n> EOF")
			if !found || !closed {
				t.Fatal("it declares no identity")
			}
			var identity struct {
				Spec struct {
					Audiences    []string
					TargetSystem struct {
						Type           string
						ProviderConfig map[string]any
					}
				}
			}
			testkit.Must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(strings.TrimPrefix(declared, "> "), "\n> ", "\n")), &identity))
			providerConfig := testkit.Need(yaml.Marshal(identity.Spec.TargetSystem.ProviderConfig))(t)
			asJSON := testkit.Need(yaml.YAMLToJSON(providerConfig))(t)
			if identity.Spec.TargetSystem.Type != c.name || !slices.Equal(identity.Spec.Audiences, []string{c.audience}) {
				t.Errorf("its identity is for %s, with audiences %q; want %s and %q", identity.Spec.TargetSystem.Type, identity.Spec.Audiences, c.name, c.audience)
			}
			place := target.PodPlace(target.Linux, target.DefaultMountPath, "cart")
			declaredConfig := config(t, c.name, string(asJSON))
			for _, given := range []target.Injection{declaredConfig.Injection(place), config(t, c.name, c.everything()).Injection(place)} {
				for _, variable := range given.Env {
					if !strings.Contains(string(content), "`"+variable.Name+"`") {
						t.Errorf("it does not name the variable %s", variable.Name)
					}
				}
				for _, file := range append(given.Mounts, target.TokenFile) {
					if !strings.Contains(string(content), "`"+place.File(file)+"`") {
						t.Errorf("it does not name the file %s", place.File(file))
					}
				}
			}
		})
	}
}
