package target

import (
	"errors"
	"time"

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
	// Short is the short form of its providerConfigs.
	Short Short
	// Trust is the side of the system: how it is configured to accept tokens.
	Trust trust.Side
	// Errors returns the errors by which the system refuses a token.
	Errors func() []clouderror.Explanation
	// Party is what the system takes of any issuer.
	Party Party
}

// Party are the documented facts of a relying party, for checks of issuers that need not be ours. Zero values limit nothing.
type Party struct {
	// Name is that of messages, such as Microsoft Entra; Code that of findings, such as entra.
	Name, Code string
	// Algorithms are those of JWA (RFC 7518).
	Algorithms []string
	// MinSubject and MaxSubject are in bytes, Audience is in characters.
	MinSubject, MaxSubject, Audience int
	// Lifetime is from iat to exp. Remark is about it.
	Lifetime time.Duration
	Remark   string
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
