package targets

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/clouderror"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/targettest"
	"github.com/credence-id/credence/internal/trust"
	"github.com/credence-id/credence/test/testkit"
)

// The target system that docs/howto/add-a-target.md adds. TestHowTo compares the two.

// System is OpenBao.
func System() target.System {
	return target.System{
		Name:    "openbao",
		Adapter: Adapter{},
		Short:   target.Short{Fields: []string{"address", "role"}},
		Trust:   trust.Side{Commands: writeCommands, Terraform: writeTerraform},
		Errors:  refusals,
	}
}

// Adapter is OpenBao.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return "openbao" }

// Limits implements target.Adapter.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.ES256, identity.RS256}}
}

var (
	address = regexp.MustCompile(`\Ahttps://[a-z0-9.-]+(?::\d{1,5})?\z`)
	role    = regexp.MustCompile(`\A[\w-]{1,64}\z`)
)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	fields := target.Read(providerConfig, "openbao", path, "address", "role")
	c := config{
		path:    path,
		address: fields.Required("address", "must be a URL, such as https://bao.example:8200", address.MatchString),
		role:    fields.Required("role", "must be the name of a role", role.MatchString),
	}
	if errs := fields.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

type config struct {
	path          *field.Path
	address, role string
}

// Injection implements target.Config.
func (c config) Injection(place target.Place) target.Injection {
	return target.Injection{
		Keys: []target.Key{{Name: "role", Content: c.role}},
		Env: []target.Variable{
			{Name: "BAO_ADDR", Value: c.address},
			{Name: "BAO_JWT_FILE", Value: place.Token()},
		},
	}
}

// Account implements target.Config. Tokens are sent to the address.
func (c config) Account() []target.Fixed {
	return []target.Fixed{{Path: c.path.Child("address"), Value: c.address, Host: true}}
}

// Audiences implements target.Config.
func (config) Audiences() []string { return nil }

func writeCommands(i trust.Identity) (string, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return "", err
	}
	body := trust.Document(trust.Object{{"role_type", "jwt"}, {"user_claim", "sub"}, {"bound_subject", i.Subject}, {"bound_audiences", i.Audiences}})
	return "# The auth method jwt trusts the issuer " + i.Issuer + " already.\n" +
		"printf '%s' " + trust.Shell(body) + " |\n  bao write " + trust.Shell("auth/jwt/role/"+c.role) + " -\n", nil
}

func writeTerraform(i trust.Identity) (string, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return "", err
	}
	return trust.Block("resource", []string{"vault_jwt_auth_backend_role", i.ResourceName()},
		trust.Member{"backend", "jwt"}, trust.Member{"role_name", c.role}, trust.Member{"role_type", "jwt"}, trust.Member{"user_claim", "sub"},
		trust.Member{"bound_subject", i.Subject}, trust.Member{"bound_audiences", i.Audiences}), nil
}

func refusals() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("role could not be found", "There is no such role.",
			[]clouderror.Fact{clouderror.Config}, []string{"role: bao list auth/jwt/role"}),
	}
}

func suite() targettest.Suite {
	return targettest.Suite{Adapter: Adapter{}, Accepted: []string{
		`{"apiVersion":"openbao.authentication.gardener.cloud/v1alpha1","kind":"Config","address":"https://bao.example","role":"reader"}`,
	}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"address": {"https://bao.example:8200": true, "http://bao.example": false, "": false},
		"role":    {"writer": true, "a b": false},
	})
}

// End of what the document shows.

// The folder of the document, and its line in the list, are all that a target system needs.
func TestHowTo(t *testing.T) {
	document := testkit.Need(os.ReadFile("../../docs/howto/add-a-target.md"))(t)
	source := testkit.Need(os.ReadFile("howto_test.go"))(t)
	blocks := strings.Split(string(document), "```go\n")[1:]
	if len(blocks) != 6 {
		t.Fatalf("the document has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(source), code) {
			t.Errorf("the document shows what was not tried:\n%s", code)
		}
	}

	before := systems
	t.Cleanup(func() { systems = before })
	systems = append(slices.Clone(systems), System())
	if For("openbao") != (Adapter{}) || !Known("openbao") || !slices.Contains(Types(), "openbao") || Algorithm("openbao") != identity.ES256 {
		t.Errorf("the type is not known: %v", Types())
	}
	i := trust.Identity{
		Namespace: "my-team", Name: "my-app", Type: "openbao", Issuer: "https://id.example", Subject: "gardener.cloud:x", Audiences: []string{"bao"},
		ProviderConfig: []byte(suite().Accepted[0]),
	}
	if text, err := WriteTrust("openbao", trust.Commands, i); err != nil || !strings.Contains(text, "bao write 'auth/jwt/role/reader'") {
		t.Errorf("trust: %v\n%s", err, text)
	}
	if _, err := WriteTrust("vault", trust.Commands, i); err == nil {
		t.Error("vault trusts an identity of another system")
	}
	if found := Explain("bao: role could not be found", ""); len(found) != 1 || found[0].System != "openbao" {
		t.Errorf("errors: %v", found)
	}
}
