package keyring

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// table is what kubectl get prints.
type table struct{}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the key ring."},
	{Name: "Ready", Type: "string", Description: "Whether a key of every algorithm signs."},
	{Name: "Rotating", Type: "string", Description: "Why a rotation that is due does not take place; OnTime without one."},
	{Name: "Keys", Type: "integer", Description: "How many keys are published."},
	{Name: "Signing", Type: "string", Description: "The start of the ID of the key that signs, for each algorithm."},
	{Name: "Next Change", Type: "string", Description: "When the published documents change next (UTC)."},
	{Name: "Age", Type: "string", Description: "Time since the key ring was created."},
	{Name: "Issuer", Type: "string", Priority: 1, Description: "The iss claim of the tokens that the keys sign."},
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
		ring, ok := obj.(*v1alpha1.KeyRing)
		if !ok {
			return nil, fmt.Errorf("a %T is not a KeyRing", obj)
		}
		ready, rotating, next := "Unknown", "Unknown", "<none>"
		if condition := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
			ready = string(condition.Status)
		}
		if condition := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionRotating); condition != nil {
			rotating = condition.Reason
		}
		if ring.Status.NextChange != nil {
			next = ring.Status.NextChange.UTC().Format(time.RFC3339)
		}
		return []any{name, ready, rotating, len(ring.Status.Keys), ring.Status.Signing, next, age, ring.Status.Issuer}, nil
	})
	out.Rows = rows
	return out, err
}
