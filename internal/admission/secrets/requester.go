package secrets

import (
	"fmt"
	"maps"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/tokensecret"
)

// requester is the patch that records the user who has a Secret filled: the one who labels it, changes which identity it requests, or
// takes it over by writing another name into the annotation. All other requests leave the user as it was. If it is this user already,
// it stays: the API server may send a second request, with the result of the first.
func (r Request) requester() ([]Operation, *Denial) {
	if r.User.Name == r.Agent {
		return nil, nil
	}
	have := tokensecret.Requester(r.Secret)
	named := have[v1alpha1.AnnotationRequester]
	want, err := tokensecret.FormatRequester(r.User)
	if err != nil || !maps.Equal(have, want) {
		if r.sameRequest() && (named == "" || named == r.Old.Annotations[v1alpha1.AnnotationRequester]) {
			want = tokensecret.Requester(r.Old)
		} else if err != nil {
			return nil, decision.Invalid(fmt.Sprintf("%s: the user who requests tokens is recorded on the Secret; have another user label it", err))
		}
	}
	var operations []Operation
	for _, annotation := range tokensecret.RequesterAnnotations() {
		path := metadataPath("annotations", annotation)
		_, present := r.Secret.Annotations[annotation]
		switch value, wanted := want[annotation]; {
		case wanted && have[annotation] != value:
			operations = append(operations, Operation{Op: "add", Path: path, Value: value})
		case !wanted && present:
			operations = append(operations, Operation{Op: "remove", Path: path})
		}
	}
	return operations, nil
}
