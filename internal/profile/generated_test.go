package profile_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

// arbitrary is a value with half of its optional fields set, from a few values, so that equal ones are frequent.
func arbitrary[T any](r *rand.Rand) T {
	value, ok := quick.Value(reflect.TypeFor[T](), r)
	if !ok {
		panic("no value can be generated")
	}
	settable := reflect.New(value.Type()).Elem()
	settable.Set(value)
	plain(settable, r)
	return settable.Interface().(T)
}

func plain(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice:
		if r.Intn(2) == 0 {
			v.SetZero()
		} else if v.Kind() == reflect.Pointer && !v.IsNil() {
			plain(v.Elem(), r)
		} else if v.Kind() == reflect.Slice {
			v.Set(v.Slice(0, min(v.Len(), 1)))
			for i := range v.Len() {
				plain(v.Index(i), r)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			plain(v.Field(i), r)
		}
	case reflect.String:
		v.SetString([]string{"a", "b"}[r.Intn(2)])
	case reflect.Int64:
		v.SetInt(int64(r.Intn(2)))
	}
}

func arbitraryPod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: arbitrary[*corev1.PodSecurityContext](r)}}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{} // as the API server sets it
	}
	if r.Intn(2) == 0 {
		pod.Annotations = map[string]string{"a": "b"}
	}
	for i := range 1 + r.Intn(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: string(rune('a' + i)), SecurityContext: arbitrary[*corev1.SecurityContext](r)})
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: string(rune('p' + i)), SecurityContext: arbitrary[*corev1.SecurityContext](r)})
	}
	return pod
}

func arbitraryProfile(r *rand.Rand) profile.Profile {
	p := profile.Profile{Namespace: "shop", Name: "cart", Exists: true, Contexts: accounts.SecurityContexts{
		Pod: arbitrary[*corev1.PodSecurityContext](r), Container: arbitrary[*corev1.SecurityContext](r), Windows: arbitrary[*corev1.WindowsSecurityContextOptions](r)}}
	if p.Contexts.Pod != nil {
		p.Contexts.Pod.WindowsOptions = nil
	}
	if p.Contexts.Container != nil {
		p.Contexts.Container.WindowsOptions = nil
	}
	p.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce}
	p.Spec.AutomountToken = arbitrary[*bool](r)
	if r.Intn(2) == 0 {
		p.Spec.Secrets = &accounts.ProfileSecrets{ImagePull: []string{"registry"}}
	}
	return p
}

// What Fill fills in is its patch, is left alone by another pass, is taken off by Requested, and is as strict as the profile where the pod
// had nothing.
func TestFillOfGeneratedPods(t *testing.T) {
	for seed := range int64(3_000) {
		r := rand.New(rand.NewSource(seed))
		p, pod := arbitraryProfile(r), arbitraryPod(r)
		os := []target.OS{"", target.Linux, target.Windows}[r.Intn(3)]
		before := pod.DeepCopy()
		filled := p.Fill(profile.Pod{Pod: pod, OS: os})
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("seed %d: the pod was changed: %s", seed, diff)
		}
		if diff := cmp.Diff(text(t, filled.Pod), text(t, patched(t, pod, filled))); diff != "" {
			t.Fatalf("seed %d: the patch makes another pod (-Pod +patched): %s", seed, diff)
		}
		if again := p.Fill(profile.Pod{Pod: filled.Pod, OS: os}); len(again.Patch) > 0 {
			t.Fatalf("seed %d: a second pass patches %+v\nof %s", seed, again.Patch, text(t, before))
		}
		requested := profile.Requested(filled.Pod)
		if again := p.Fill(profile.Pod{Pod: requested, OS: os}); text(t, again.Pod) != text(t, filled.Pod) {
			t.Fatalf("seed %d: the pod as requested becomes another one: %s", seed, cmp.Diff(text(t, filled.Pod), text(t, again.Pod)))
		}
		open := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
		filled = p.Fill(profile.Pod{Pod: open, OS: os})
		if p.Contexts.Container != nil && p.Contexts.Container.Privileged != nil && *p.Contexts.Container.Privileged {
			continue // beside which nothing is confined
		}
		if weaker := p.Weaker(profile.Pod{Pod: filled.Pod, OS: os}); len(weaker) > 0 {
			t.Fatalf("seed %d: a pod that left all open is weaker: %+v", seed, weaker)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out := testkit.Need(json.MarshalIndent(v, "", " "))(t)
	return string(out)
}

func patched(t *testing.T, pod *corev1.Pod, filled profile.Filled) *corev1.Pod {
	t.Helper()
	if len(filled.Patch) == 0 {
		return filled.Pod
	}
	patch, err := jsonpatch.DecodePatch([]byte(text(t, filled.Patch)))
	testkit.Must(t, err)
	out, err := patch.Apply([]byte(text(t, pod)))
	if err != nil {
		t.Fatalf("%v: %s", err, text(t, filled.Patch))
	}
	var changed corev1.Pod
	testkit.Must(t, json.Unmarshal(out, &changed))
	return &changed
}
