package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// must, expect, need and errOf are those of testkit under the names that tests of this folder use.
func must(t testing.TB, err error, step ...string) {
	t.Helper()
	testkit.Must(t, err, step...)
}

func expect(t testing.TB, err error, step ...string) {
	t.Helper()
	testkit.Expect(t, err, step...)
}

func need[T any](value T, err error) func(testing.TB) T { return testkit.Need(value, err) }

func errOf[T any](_ T, err error) error { return err }

// is returns an error unless a response has a code, and all words in its body.
func (r response) is(code int, words ...string) error {
	if r.Code != code {
		return fmt.Errorf("code %d, want %d: %.2000s", r.Code, code, r.Body)
	}
	for _, word := range words {
		if !strings.Contains(string(r.Body), word) {
			return fmt.Errorf("code %d without %q: %.2000s", r.Code, word, r.Body)
		}
	}
	return nil
}
