package pods

import "github.com/credence-id/credence/internal/admission"

// Result is the decision on a pod, Denial why it is refused, Operation one addition to it.
type (
	Result    = admission.Result
	Denial    = admission.Denial
	Operation = admission.Operation
)
