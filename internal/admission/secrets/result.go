package secrets

import "github.com/credence-id/credence/internal/admission"

// Result is the decision on a Secret, Denial why it is refused, Operation one change of its keys.
type (
	Result    = admission.Result
	Denial    = admission.Denial
	Operation = admission.Operation
)
