package sdk

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/target"
)

// The how-to of each cloud declares an identity that its adapter takes, and names every file and variable that pods get.
func TestHowtos(t *testing.T) {
	for _, c := range clouds() {
		t.Run(c.String(), func(t *testing.T) {
			content, err := os.ReadFile("../../docs/howto/" + c.name + ".md")
			if err != nil {
				t.Fatal(err)
			}
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
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(strings.TrimPrefix(declared, "> "), "\n> ", "\n")), &identity); err != nil {
				t.Fatal(err)
			}
			providerConfig, err := yaml.Marshal(identity.Spec.TargetSystem.ProviderConfig)
			if err != nil {
				t.Fatal(err)
			}
			asJSON, err := yaml.YAMLToJSON(providerConfig)
			if err != nil {
				t.Fatal(err)
			}
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
