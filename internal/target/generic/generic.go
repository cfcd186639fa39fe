// Package generic is any system that only verifies tokens: one without an adapter of its own. In goes a providerConfig, which
// is for others to understand; out comes an Injection of nothing but the token. It never looks into the providerConfig.
package generic

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
)

// Type is the type of target system that has no adapter of its own.
const Type = "generic"

// System is any system that only verifies tokens. How it is made to trust an identity is not known. Its errors are
// those of any system.
func System() target.System { return target.System{Name: Type, Adapter: Adapter{}, Errors: failures} }

// Adapter is the system that has no adapter of its own.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter: RS256 first, as every relying party takes it.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.RS256, identity.ES256}}
}

// Parse implements target.Adapter. Any providerConfig is right.
func (Adapter) Parse([]byte, *field.Path) (target.Config, field.ErrorList) { return config{}, nil }

type config struct{}

func (config) Injection(target.Place) target.Injection { return target.Injection{} }
func (config) Account() []target.Fixed                 { return nil }
func (config) Audiences() []string                     { return nil }
