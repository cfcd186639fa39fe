package workloadidentity

import (
	"context"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// table is what kubectl get prints.
type table struct{}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the identity."},
	{Name: "Subject", Type: "string", Description: "The sub claim of the identity's tokens."},
	{Name: "Target", Type: "string", Description: "Kind of system that the tokens are presented to."},
	{Name: "Age", Type: "string", Description: "Time since the identity was created."},
	{Name: "Audiences", Type: "string", Priority: 1, Description: "The aud claim of the identity's tokens."},
}

// ConvertToTable implements rest.TableConvertor.
func (table) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if list, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(obj); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		out.ColumnDefinitions = columns
	}
	rows, err := metatable.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		wi := obj.(*v1alpha1.WorkloadIdentity)
		return []any{name, wi.Status.Sub, wi.Spec.TargetSystem.Type, age, strings.Join(wi.Spec.Audiences, ",")}, nil
	})
	out.Rows = rows
	return out, err
}
