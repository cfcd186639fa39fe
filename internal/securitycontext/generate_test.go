package securitycontext_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"

	corev1 "k8s.io/api/core/v1"
)

// generated calls check with as many pods' and containers' security contexts, always the same ones. Every field is sometimes
// set and sometimes not, fields that Kubernetes adds one day included; either context is sometimes nil.
func generated(t *testing.T, n int, check func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext)) {
	t.Helper()
	for seed := range int64(n) {
		r := rand.New(rand.NewSource(seed))
		pod, container := arbitrary[*corev1.PodSecurityContext](r), arbitrary[*corev1.SecurityContext](r)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { check(t, pod, container) })
		if t.Failed() {
			return
		}
	}
}

func arbitrary[T any](r *rand.Rand) T {
	value, ok := quick.Value(reflect.TypeFor[T](), r)
	if !ok {
		panic(fmt.Sprintf("no values of %s can be generated", reflect.TypeFor[T]()))
	}
	settable := reflect.New(value.Type()).Elem()
	settable.Set(value)
	thin(settable, r)
	return settable.Interface().(T)
}

// thin unsets half of the optional fields, as quick sets nearly everything.
func thin(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if r.Intn(2) == 0 {
			v.SetZero()
		} else if v.Kind() == reflect.Pointer && !v.IsNil() {
			thin(v.Elem(), r)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			thin(v.Field(i), r)
		}
	}
}

// scramble changes everything that can be reached from v.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scramble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i))
		}
	case reflect.String:
		v.SetString(v.String() + "changed")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		panic("scramble does not know " + v.Kind().String())
	}
}
