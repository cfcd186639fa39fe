// Package stored has what the kinds that the API server stores have in common. In go a kind's columns, its store and
// the review of its writers; out come tables, strategies and stores that differ in nothing else. It knows no kind.
package stored

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Table is what kubectl get prints of objects of a type.
type Table[T any] struct {
	Columns []metav1.TableColumnDefinition
	// Cells are the row of an object, in the order of the columns. The age is that for people.
	Cells func(object T, name, age string) []any
}

var _ rest.TableConvertor = Table[any]{}

// ConvertToTable implements rest.TableConvertor.
func (t Table[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if list, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(obj); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		out.ColumnDefinitions = t.Columns
	}
	rows, err := metatable.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("a %T is not a %T", obj, object)
		}
		return t.Cells(object, name, age), nil
	})
	out.Rows = rows
	return out, err
}
