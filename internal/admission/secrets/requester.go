package secrets

import (
	"fmt"
	"maps"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission"
	"github.com/credence-id/credence/internal/tokensecret"
)

// requester is what makes a Secret hold the user who has it filled: whoever labels it, changes which identity it asks for, or
// takes it over by writing another name into the annotation. All other requests leave the user as it was. What is this user already
// stays: the API server may ask a second time, about what the first answer made.
func (r Request) requester() ([]Operation, *Denial) {
	if r.User.Name == r.Agent {
		return nil, nil
	}
	have := tokensecret.Requester(r.Secret)
	named := have[v1alpha1.AnnotationRequester]
	want, err := tokensecret.FormatRequester(r.User)
	if err != nil || !maps.Equal(have, want) {
		if r.asksTheSame() && (named == "" || named == r.Old.Annotations[v1alpha1.AnnotationRequester]) {
			want = tokensecret.Requester(r.Old)
		} else if err != nil {
			return nil, admission.Invalid(fmt.Sprintf("%s: the user who asks for tokens is kept on the Secret; have another user label it", err))
		}
	}
	var operations []Operation
	for _, annotation := range tokensecret.RequesterAnnotations() {
		path := "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
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
