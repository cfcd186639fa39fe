package contextkind

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/wording"
)

// Delivery is a Secret with tokens that an object needs.
type Delivery struct {
	// Secret is empty if it is not known: then there is a Fault.
	Secret types.NamespacedName
	// Reference names the reference of the ContextKind.
	Reference string
	// To is the identity or, if Bound is set, the CredentialsBinding.
	To    types.NamespacedName
	Bound bool
	// Fault is why it cannot be delivered.
	Fault string
}

// deliver is the compiled deliver of a reference. references has no program if it was not set.
type deliver struct{ namespace, secretName, references expression }

// deliveries returns the Secrets for the names that a reference yielded. If one is not known, a Delivery without a Secret has the fault.
func (r reference) deliveries(ctx context.Context, object map[string]any, names []types.NamespacedName, err error) []Delivery {
	if r.deliver == nil || err == nil && len(names) == 0 {
		return nil
	}
	var found []Delivery
	if err == nil {
		found, err = r.secrets(ctx, object, names)
	}
	if err != nil {
		found = append(found, Delivery{Reference: r.name, Fault: wording.AbbreviateTo(fmt.Sprintf("the Secret of reference %s is not known: %v", r.name, err), maxFault)})
	}
	return found
}

// secrets also returns those that come before an error.
func (r reference) secrets(ctx context.Context, object map[string]any, names []types.NamespacedName) ([]Delivery, error) {
	namespace, err := r.deliver.namespace.text(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("deliver.namespace: %w", err)
	}
	if len(utilvalidation.IsDNS1123Label(namespace)) > 0 {
		return nil, fmt.Errorf("deliver.namespace: %w", misnamed(namespace, "a namespace", utilvalidation.DNS1123LabelMaxLength))
	}
	texts, err := r.texts(ctx, object, names)
	if err != nil {
		return nil, fmt.Errorf("deliver.references: %w", err)
	}
	found := make([]Delivery, 0, len(names))
	for i, to := range names {
		name, err := r.deliver.secretName.textOf(ctx, object, texts[i])
		if err != nil {
			return found, fmt.Errorf("deliver.secretName: %w", err)
		}
		if len(utilvalidation.IsDNS1123Subdomain(name)) > 0 {
			return found, fmt.Errorf("deliver.secretName: %w", misnamed(name, "a Secret", utilvalidation.DNS1123SubdomainMaxLength))
		}
		found = append(found, Delivery{Secret: types.NamespacedName{Namespace: namespace, Name: name}, Reference: r.name, To: to, Bound: r.bound})
	}
	return found, nil
}

// misnamed is the error of a value that is not the name of an object. One that is too long is printed in part, so its length is stated.
func misnamed(value, what string, most int) error {
	if n := len(value); n > most {
		return fmt.Errorf("%q is not the name of %s: it has %d characters, and may have %d", wording.Abbreviate(value), what, n, most)
	}
	return fmt.Errorf("%q is not the name of %s", wording.Abbreviate(value), what)
}

// texts are the values of the variable reference, one for each name.
func (r reference) texts(ctx context.Context, object map[string]any, names []types.NamespacedName) ([]string, error) {
	if r.deliver.references.program == nil {
		texts := make([]string, 0, len(names))
		for _, name := range names {
			texts = append(texts, name.Name)
		}
		return texts, nil
	}
	texts, err := r.deliver.references.texts(ctx, object)
	if err == nil && len(texts) != len(names) {
		err = fmt.Errorf("the list has %d entries, and the reference has %d", len(texts), len(names))
	}
	return texts, err
}

// bounded keeps the first maxDeliveries, and adds one without a Secret that has the fault: while there is one, agents delete no Secret of
// the object.
func bounded(all []Delivery) []Delivery {
	if len(all) <= maxDeliveries {
		return all
	}
	return append(slices.Clone(all[:maxDeliveries]), Delivery{
		Reference: all[maxDeliveries].Reference,
		Fault:     fmt.Sprintf("the object needs %d Secrets, and at most %d are delivered of one object: make it refer to fewer identities and bindings", len(all), maxDeliveries),
	})
}

// unambiguous returns each Secret once. A Secret that two identities would need has a fault.
func unambiguous(all []Delivery) []Delivery {
	var found []Delivery
	at := map[types.NamespacedName]int{}
	for _, each := range all {
		i, taken := at[each.Secret]
		if !taken || each.Secret.Name == "" {
			at[each.Secret] = len(found)
			found = append(found, each)
			continue
		}
		if first := &found[i]; first.Fault == "" && (first.To != each.To || first.Bound != each.Bound) {
			first.Fault = fmt.Sprintf("the object names the Secret %s twice: for %s by reference %s, and for %s by reference %s", each.Secret, first.To, first.Reference, each.To, each.Reference)
		}
	}
	return found
}
