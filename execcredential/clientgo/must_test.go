package clientgo_test

import (
	"strings"
	"testing"
)

// must ends a test one of whose steps has failed. The words name the step where the error does not.
func must(t testing.TB, err error, step ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(strings.Join(append(step, err.Error()), ": "))
	}
}

// expect is must for a test that goes on.
func expect(t testing.TB, err error, step ...string) {
	t.Helper()
	if err != nil {
		t.Error(strings.Join(append(step, err.Error()), ": "))
	}
}

// need returns the value of a step that the rest of a test depends on: need(os.ReadFile(path))(t).
func need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errOf is the error of a step whose value does not matter.
func errOf[T any](_ T, err error) error { return err }
