package targettest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/clouderror"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Sides is what all sides of a system must do: its trust names exactly the identity, in every form, and each of its errors is found
// by its code. The providerConfig is one that it can be made to trust.
func Sides(t *testing.T, system target.System, providerConfig string) {
	t.Helper()
	if problems := validation.IsDNS1123Label(system.Name); len(problems) > 0 || system.Adapter != nil && system.Adapter.Type() != system.Name {
		t.Errorf("the system has the name %q, which is that of no type: %v", system.Name, problems)
	}
	if system.Errors != nil {
		known := system.Errors()
		for _, e := range known {
			if found := clouderror.Find(e.Code, known); len(found) == 0 || found[0].Code != e.Code {
				t.Errorf("error %q is not found by its code: %v", e.Code, found)
			}
			if e.Cause == "" || len(e.Checks) == 0 {
				t.Errorf("error %q has no cause, or nothing to check", e.Code)
			}
		}
	}
	identity := trust.Identity{
		Namespace: "my-team", Name: "my.app", Type: system.Name, Issuer: "https://identity.example.com/team", Audiences: []string{"audience"},
		Subject: "gardener.cloud:workloadidentity:my-team:my.app:0b2f8a3e-4f0e-4f0c-9a47-000000000001", ProviderConfig: []byte(providerConfig),
	}
	side := system.Trust
	if (side.Commands == nil) != (side.Terraform == nil) || side.Commands == nil && (side.Provider != nil || side.Any) {
		t.Errorf("trust has one of commands and Terraform: %+v", side)
	}
	for form, write := range map[trust.Form]struct {
		text   func(trust.Identity) (string, error)
		exacts []string
	}{
		trust.Commands: {side.Commands, []string{identity.Issuer, identity.Subject, identity.Audiences[0]}},
		// A look-up needs no issuer, and the shared part names no subject.
		trust.Terraform: {side.Terraform, []string{identity.Subject}},
		trust.Provider:  {side.Provider, []string{identity.Issuer}},
	} {
		if write.text == nil {
			continue
		}
		text, err := write.text(identity)
		if err != nil {
			t.Errorf("%s: %v", form, err)
		}
		for _, exact := range write.exacts {
			if !strings.Contains(text, exact) {
				t.Errorf("%s lacks %q:\n%s", form, exact, text)
			}
		}
		if strings.Contains(text, "*") || strings.Contains(text, "StringLike") {
			t.Errorf("%s has a pattern:\n%s", form, text)
		}
	}
}
