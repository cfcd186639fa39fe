package pods

import "github.com/credence-id/credence/internal/decision"

// Result is the decision on a pod, Denial why it is refused, Operation one addition to it.
type (
	Result    = decision.Result
	Denial    = decision.Denial
	Operation = decision.Operation
)
