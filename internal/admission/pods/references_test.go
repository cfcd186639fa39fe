package pods

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/tokensecret"
)

// Every field of a pod that can name a Secret is found by walking its type, so that one that a later version of the API adds
// makes this test fail.
func TestEveryFieldThatNamesASecretIsSeen(t *testing.T) {
	const foreign = tokensecret.NamePrefix + "other-banana-0123456789"
	var tried []string
	for _, set := range secretFields(reflect.TypeFor[corev1.PodSpec](), "spec", false, nil) {
		pod := &corev1.Pod{}
		where := set(reflect.ValueOf(&pod.Spec).Elem(), foreign)
		tried = append(tried, where)
		denial := Decide(Request{Namespace: "ns", Pod: pod, Account: Account{Name: "app", Exists: true}}).Denial
		if denial == nil || denial.Code != 403 || !strings.Contains(denial.Message, foreign) {
			t.Errorf("%s may name a Secret of another service account: %+v", where, denial)
		}
		own := Account{Name: "app", Exists: true, Identities: []Identity{{Name: "banana"}}}
		pod = &corev1.Pod{}
		set(reflect.ValueOf(&pod.Spec).Elem(), tokensecret.NameFor("app", "banana"))
		if denial := foreignSecrets(Request{Namespace: "ns", Pod: pod, Account: own}); denial != nil {
			t.Errorf("%s may not name the Secret of its own service account: %s", where, denial.Message)
		}
		pod = &corev1.Pod{}
		set(reflect.ValueOf(&pod.Spec).Elem(), "another-secret")
		if denial := foreignSecrets(Request{Namespace: "ns", Pod: pod, Account: own}); denial != nil {
			t.Errorf("%s may not name a Secret of the user's: %s", where, denial.Message)
		}
	}
	if len(tried) < 17 {
		t.Errorf("only %d fields were found: %s", len(tried), tried)
	}
}

// setter sets one field of a value to the name of a Secret, with its parents, and returns its path.
type setter func(v reflect.Value, name string) string

// secretFields walks a type. A string field names a Secret if its own name does so, or if it is a Name below such a field.
func secretFields(t reflect.Type, at string, below bool, seen []reflect.Type) []setter {
	switch t.Kind() {
	case reflect.Pointer:
		return wrap(secretFields(t.Elem(), at, below, seen), func(v reflect.Value) reflect.Value {
			v.Set(reflect.New(t.Elem()))
			return v.Elem()
		})
	case reflect.Slice:
		return wrap(secretFields(t.Elem(), at+"[0]", below, seen), func(v reflect.Value) reflect.Value {
			v.Set(reflect.MakeSlice(t, 1, 1))
			return v.Index(0)
		})
	case reflect.Struct:
	default:
		return nil
	}
	for _, outer := range seen {
		if outer == t {
			return nil
		}
	}
	seen = append(seen[:len(seen):len(seen)], t)
	var found []setter
	for i := range t.NumField() {
		f := t.Field(i)
		secret := strings.Contains(strings.ToLower(f.Name), "secret")
		name := at + "." + strings.Split(f.Tag.Get("json"), ",")[0]
		if f.Type.Kind() == reflect.String && (secret && strings.HasSuffix(f.Name, "Name") || below && f.Name == "Name") {
			found = append(found, func(v reflect.Value, secretName string) string {
				v.Field(i).SetString(secretName)
				return name
			})
			continue
		}
		found = append(found, wrap(secretFields(f.Type, name, below || secret, seen), func(v reflect.Value) reflect.Value { return v.Field(i) })...)
	}
	return found
}

func wrap(inner []setter, step func(reflect.Value) reflect.Value) []setter {
	wrapped := make([]setter, len(inner))
	for i, set := range inner {
		wrapped[i] = func(v reflect.Value, name string) string { return set(step(v), name) }
	}
	return wrapped
}
