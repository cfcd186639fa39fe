package apiserver

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// verdicts is an admission that refuses; each method with its own error.
type verdicts struct{ *admission.Handler }

var errAdmit, errValidate = errors.New("admit"), errors.New("validate")

func (verdicts) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errAdmit
}

func (verdicts) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errValidate
}

// Whatever grows stacks passes on each decision of admission.
func TestStacksOfWritesGrowBesideAdmission(t *testing.T) {
	grown := GrowStackOfWrites(verdicts{admission.NewHandler(admission.Create)})
	if !grown.Handles(admission.Create) || grown.Handles(admission.Delete) {
		t.Error("not the operations of the next one are handled")
	}
	if err := grown.(admission.MutationInterface).Admit(t.Context(), nil, nil); !errors.Is(err, errAdmit) {
		t.Errorf("mutation: %v", err)
	}
	if err := grown.(admission.ValidationInterface).Validate(t.Context(), nil, nil); !errors.Is(err, errValidate) {
		t.Errorf("validation: %v", err)
	}
}
