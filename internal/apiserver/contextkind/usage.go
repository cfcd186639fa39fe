package contextkind

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

const (
	// Objects is what each object counts as one of.
	Objects = "objects"

	// maxAmounts bounds what usage may return, and maxQuantity the length of each quantity and name.
	maxAmounts  = 20
	maxQuantity = 64
)

// Amounts are how much an object uses, by the name of what is counted.
type Amounts = map[string]resource.Quantity

var amounts = []*cel.Type{cel.MapType(cel.StringType, cel.DynType), cel.MapType(cel.StringType, cel.IntType), cel.MapType(cel.StringType, cel.StringType), cel.MapType(cel.DynType, cel.DynType)}

func (k *Kind) compileUsage(spec v1alpha1.ContextKindSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, each := range []struct {
		to       **expression
		text     string
		child    string
		accepted []*cel.Type
	}{{&k.usage, spec.Usage, "usage", amounts}, {&k.expires, spec.Expires, "expires", []*cel.Type{cel.StringType}}} {
		if each.text == "" {
			continue
		}
		compiled, err := compile(each.text, objectScope, path.Child(each.child), each.accepted...)
		if err != nil {
			errs = append(errs, err)
		}
		*each.to = &compiled
	}
	return errs
}

// Amounts returns how much an object uses.
func (k *Kind) Amounts(ctx context.Context, object map[string]any) (Amounts, error) {
	found := Amounts{Objects: *resource.NewQuantity(1, resource.DecimalSI)}
	if k.usage == nil {
		return found, nil
	}
	if err := k.usage.amounts(ctx, object, found); err != nil {
		return nil, k.fault("usage", err)
	}
	return found, nil
}

// amounts adds what the expression returns for an object.
func (e *expression) amounts(ctx context.Context, object map[string]any, to Amounts) error {
	value, _, err := e.program.ContextEval(ctx, map[string]any{e.scope.object: object})
	if err != nil {
		return err
	}
	all, ok := value.(traits.Mapper)
	if !ok {
		return fmt.Errorf("the value is of type %s, and not a map of quantities", value.Type().TypeName())
	}
	if size, ok := all.Size().(types.Int); !ok || size > maxAmounts {
		return fmt.Errorf("the map has %v entries, at most %d are allowed", all.Size(), maxAmounts)
	}
	for each := all.Iterator(); each.HasNext() == types.True; {
		key := each.Next()
		name, ok := key.(types.String)
		if !ok || name == "" || len(name) > maxQuantity {
			return fmt.Errorf("%q is not the name of what is counted", wording.Abbreviate(fmt.Sprint(key.Value())))
		}
		quantity, err := quantityOf(all.Get(key).Value())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		to[string(name)] = quantity
	}
	return nil
}

func quantityOf(value any) (resource.Quantity, error) {
	var quantity resource.Quantity
	switch value := value.(type) {
	case int64:
		quantity = *resource.NewQuantity(value, resource.DecimalSI)
	case string:
		if len(value) > maxQuantity {
			return quantity, fmt.Errorf("%q is not a quantity", wording.Abbreviate(value))
		}
		var err error
		if quantity, err = resource.ParseQuantity(value); err != nil {
			return quantity, fmt.Errorf("%q is not a quantity", wording.Abbreviate(value))
		}
	default:
		return quantity, fmt.Errorf("the value is of type %T, and not a quantity", value)
	}
	if quantity.Sign() < 0 {
		return quantity, fmt.Errorf("%s is negative", quantity.String())
	}
	return quantity, nil
}

// Expires reports whether objects state when they end.
func (k *Kind) Expires() bool { return k.expires != nil }

// End returns when an object states that it ends; the zero time if it does not.
func (k *Kind) End(ctx context.Context, object map[string]any) (time.Time, error) {
	text, err := k.expires.text(ctx, object)
	if err != nil {
		return time.Time{}, k.fault("expires", err)
	}
	if text == "" {
		return time.Time{}, nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, k.fault("expires", fmt.Errorf("%q is not a time in RFC 3339, such as 2026-01-31T12:00:00Z", wording.Abbreviate(text)))
	}
	return end, nil
}

// fault is an error of an expression, which a field of spec has.
func (k *Kind) fault(field string, err error) error {
	return fmt.Errorf("spec.%s of ContextKind %s: %w", field, k.Name(), err)
}
