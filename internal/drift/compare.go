package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// compare finds the first field, by name, in which two pods differ. The order of named elements makes no difference: others may have added
// elements after Credence.
func compare(has, wants *corev1.Pod) (Finding, error) {
	if equality.Semantic.DeepEqual(has, wants) {
		return Finding{State: Current}, nil
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&has.Spec)
	if err != nil {
		return Finding{}, err
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wants.Spec)
	if err != nil {
		return Finding{}, err
	}
	if finding := first("spec", was, now); finding != nil {
		return *finding, nil
	}
	for _, key := range sorted(has.Annotations, wants.Annotations) {
		// Which fields a profile has filled in makes no difference to a pod that has them. Before Kubernetes 1.34, the API server adds an annotation
		// beside the field of AppArmor, for older kubelets; the field has been compared.
		if key == accounts.AnnotationFilledIn || strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			continue
		}
		if has.Annotations[key] != wants.Annotations[key] {
			return *differs("metadata.annotations["+key+"]", has.Annotations[key], wants.Annotations[key]), nil
		}
	}
	return Finding{State: Current}, nil
}

func first(path string, has, wants any) *Finding {
	if reflect.DeepEqual(has, wants) {
		return nil
	}
	if was, now, ok := two[map[string]any](has, wants); ok {
		for _, key := range sorted(was, now) {
			if finding := first(path+"."+key, was[key], now[key]); finding != nil {
				return finding
			}
		}
		return nil
	}
	if was, now, ok := two[[]any](has, wants); ok {
		return firstElement(path, was, now)
	}
	return differs(path, has, wants)
}

func firstElement(path string, has, wants []any) *Finding {
	was, named := byName(has)
	now, both := byName(wants)
	if !named || !both {
		return differs(path, has, wants)
	}
	for _, name := range sorted(was, now) {
		at := path + "[" + name + "]"
		_, there := was[name]
		if _, stays := now[name]; !there || !stays {
			return differs(at, was[name], now[name])
		}
		if finding := first(at, was[name], now[name]); finding != nil {
			return finding
		}
	}
	return nil
}

// two returns two values of a type, of which one may be absent.
func two[T any](a, b any) (was, now T, ok bool) {
	was, isWas := a.(T)
	now, isNow := b.(T)
	return was, now, isWas && isNow || isWas && b == nil || isNow && a == nil
}

// sorted are the keys of either map.
func sorted[V any](a, b map[string]V) []string {
	both := make(map[string]V, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

// byName returns the elements of a list by the names that distinguish them; false if they have none.
func byName(list []any) (map[string]any, bool) {
	named := map[string]any{}
	for _, element := range list {
		object, _ := element.(map[string]any)
		name, ok := object["mountPath"].(string)
		if !ok {
			name, ok = object["name"].(string)
		}
		if _, twice := named[name]; !ok || twice {
			return nil, false
		}
		named[name] = element
	}
	return named, true
}

// maxValue is how much is shown of a value.
const maxValue = 128

func differs(path string, has, wants any) *Finding {
	return &Finding{State: Stale, Field: path, Has: text(has), Wants: text(wants)}
}

func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return wording.AbbreviateTo(v, maxValue)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return wording.AbbreviateTo(string(encoded), maxValue)
}
