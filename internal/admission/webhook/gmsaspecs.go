package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa/lint"
)

// credentialSpecObject is what of a GMSACredentialSpec is judged.
type credentialSpecObject struct {
	Credspec json.RawMessage `json:"credspec"`
}

// credentialSpecReview checks a GMSACredentialSpec: it refuses what can never work, and warns of what rarely does. If the
// credspec stays as it was, any other change is admitted.
func credentialSpecReview(_ context.Context, r *request[credentialSpecObject]) (answer, error) {
	if r.Resource.Group != v1.GroupName || r.Resource.Resource != v1.ResourceName || r.Object == nil {
		return wrong("this webhook is for GMSACredentialSpecs, not for %s", r.about()), nil
	}
	if r.OldObject != nil && sameJSON(r.Object.Credspec, r.OldObject.Credspec) {
		return answer{}, nil
	}
	if len(r.Object.Credspec) == 0 || string(r.Object.Credspec) == "null" {
		return refused(decision.Invalid("credspec is missing, so no pod can use the object: add it beside metadata, as credence gmsa generate prints it")), nil
	}
	var result decision.Result
	for _, finding := range lint.Check(r.Object.Credspec) {
		says := fmt.Sprintf("%s: %s; %s", finding.Path, finding.Reason, finding.Fix)
		if !finding.Refused {
			result.Warnings = append(result.Warnings, says)
		} else if result.Denial == nil {
			result.Denial = decision.Invalid(says)
		}
	}
	return answerOf(result), nil
}

func sameJSON(a, b json.RawMessage) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}
