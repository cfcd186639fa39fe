package namespaces

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// byAge sorts templates, the oldest first: where templates contradict each other, the oldest one holds.
func byAge(a, b *accounts.NamespaceTemplate) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// split separates what a template wants in a namespace from what older templates want otherwise there. The reasons name both.
func split(template *accounts.NamespaceTemplate, older []*accounts.NamespaceTemplate, namespace string) (labels map[string]string, objects []*unstructured.Unstructured, contradictions []string, err error) {
	if err = checkLabels(template.Spec.Labels); err != nil {
		return nil, nil, nil, err
	}
	all, err := wanted(&template.Spec, namespace)
	if err != nil {
		return nil, nil, nil, err
	}
	labels = maps.Clone(template.Spec.Labels)
	taken := map[key]*unstructured.Unstructured{}
	of := map[key]string{}
	for _, other := range older {
		for label, value := range other.Spec.Labels {
			if own := labels[label]; own != "" && own != value {
				contradictions = append(contradictions, fmt.Sprintf("label %s is %s here, and %s in the older template %s", label, own, value, other.Name))
				delete(labels, label)
			}
		}
		theirs, err := wanted(&other.Spec, namespace)
		if err != nil {
			continue // the status of that template has it
		}
		for _, object := range theirs {
			if k := keyOf(object); taken[k] == nil {
				taken[k], of[k] = object, other.Name
			}
		}
	}
	for _, object := range all {
		k := keyOf(object)
		if before := taken[k]; before != nil && !reflect.DeepEqual(before.Object, object.Object) {
			contradictions = append(contradictions, fmt.Sprintf("%s differs from the one in the older template %s", k, of[k]))
			continue
		}
		objects = append(objects, object)
	}
	slices.Sort(contradictions)
	return labels, objects, contradictions, nil
}

func keyOf(object *unstructured.Unstructured) key { return key{object.GetKind(), object.GetName()} }
