package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	return lacks(string(r.Body), words...)
}

// lacks returns an error unless a text has all words in it.
func lacks(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("no %q in it: %.2000s", word, text)
		}
	}
	return nil
}

// same returns the differences of a value from the one that is wanted.
func same(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}
