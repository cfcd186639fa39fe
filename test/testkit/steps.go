package testkit

import (
	"strings"
	"testing"
)

// Must ends a test one of whose steps has failed. The words name the step where the error does not.
func Must(t testing.TB, err error, step ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(strings.Join(append(step, err.Error()), ": "))
	}
}

// Expect is Must for a test that goes on.
func Expect(t testing.TB, err error, step ...string) {
	t.Helper()
	if err != nil {
		t.Error(strings.Join(append(step, err.Error()), ": "))
	}
}

// Need returns the value of a step that the rest of a test depends on: Need(os.ReadFile(path))(t).
func Need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
}

// Err is the error of a step whose value does not matter.
func Err[T any](_ T, err error) error { return err }
