package secrets

import "github.com/credence-id/credence/internal/decision"

// Result is the decision on a Secret, Denial why it is refused, Operation one change of its keys.
type (
	Result    = decision.Result
	Denial    = decision.Denial
	Operation = decision.Operation
)
