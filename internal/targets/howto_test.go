package targets_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/targettest"
)

// The target system that docs/howto/add-a-target.md adds. TestHowTo compares the two.

// Adapter is Vault.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return "vault" }

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
	fields := target.Read(providerConfig, "vault", path, "address", "role")
	c := config{
		address: fields.Required("address", "must be a URL, such as https://vault.example:8200", address.MatchString),
		role:    fields.Required("role", "must be the name of a role", role.MatchString),
	}
	if errs := fields.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

type config struct{ address, role string }

// Injection implements target.Config.
func (c config) Injection(place target.Place) target.Injection {
	return target.Injection{
		Keys: []target.Key{{Name: "role", Content: c.role}},
		Env: []target.Variable{
			{Name: "VAULT_ADDR", Value: c.address},
			{Name: "VAULT_TOKEN_FILE", Value: place.Token()},
		},
	}
}

// Account implements target.Config.
func (config) Account() []target.Fixed { return nil }

// Audiences implements target.Config.
func (config) Audiences() []string { return nil }

func suite() targettest.Suite {
	return targettest.Suite{Adapter: Adapter{}, Accepted: []string{
		`{"apiVersion":"vault.authentication.gardener.cloud/v1alpha1","kind":"Config","address":"https://vault.example","role":"reader"}`,
	}}
}

func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"address": {"https://vault.example:8200": true, "http://vault.example": false, "": false},
		"role":    {"writer": true, "a b": false},
	})
}

// End of what the document shows.

func TestHowTo(t *testing.T) {
	document, err := os.ReadFile("../../docs/howto/add-a-target.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("howto_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(document), "```go\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("the document has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(source), code) {
			t.Errorf("the document shows what was not tried:\n%s", code)
		}
	}
}
