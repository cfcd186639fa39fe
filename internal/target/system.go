package target

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/clouderror"
	"github.com/credence-id/credence/internal/trust"
)

// System is all that is known of a target system. A side that it does not have is zero.
type System struct {
	// Name is the type of target system, or the name of a system that has no type of its own.
	Name string
	// Adapter is the side of the workload. Without one, identities of other types present their tokens to the system.
	Adapter Adapter
	// Trust is the side of the system: how it is configured to accept tokens.
	Trust trust.Side
	// Errors returns the errors by which the system refuses a token.
	Errors func() []clouderror.Explanation
}

// Check parses the providerConfig of a WorkloadIdentity. The error has all that is wrong.
func Check(adapter Adapter, providerConfig []byte) (Config, error) {
	config, errs := adapter.Parse(providerConfig, field.NewPath("spec", "targetSystem", "providerConfig"))
	var all []error
	for _, err := range errs {
		all = append(all, err)
	}
	return config, errors.Join(all...)
}

// Checked is Check for the package of an adapter, whose Config is a C.
func Checked[C Config](adapter Adapter, providerConfig []byte) (C, error) {
	config, err := Check(adapter, providerConfig)
	checked, _ := config.(C)
	return checked, err
}
