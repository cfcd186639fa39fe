package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/credence-id/credence/test/testkit"
)

// keys are some that the API server uses, and some that are like them.
var keys = []string{
	"/a/", "/a//b", "/a/0", "/a/00", "/a/0-0", "/a/0.0", "/a/a", "/a/a-b/c", "/a/a.b/c", "/a/a/c", "/a/a0/c", "/a/a0-/c", "/a/b/" + strings.Repeat("0", 100), "/a-b/c", "/a.b/c", "/a0/b",
	"/authentication.gardener.cloud/workloadidentities/garden-local/banana-testing",
	"/authentication.gardener.cloud/workloadidentities/garden/local.banana-testing-10",
	"/a/" + strings.Repeat("n", 63) + "/" + strings.Repeat("a.0", 80),
	"/a/" + strings.Repeat("n", 63) + "/" + strings.Repeat("a.0", 80) + "b",
}

func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, key := range keys {
		name := testkit.Need(nameOf(key))(t)
		if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
			t.Errorf("%s has the name %q: %v", key, name, problems)
		}
		if seen[name] != "" {
			t.Errorf("%s and %s have the name %q", key, seen[name], name)
		}
		seen[name] = key
	}
	if name, _ := nameOf(keys[16]); name != "authentication.gardener.cloud0-workloadidentities0-garden-local0-banana-testing" {
		t.Errorf("an ordinary key has the name %q", name)
	}
	for _, key := range []string{"/a/A", "/a/b_c", "/a/b\x00", "/a/é", "/a/b:c"} {
		if name, err := nameOf(key); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
			t.Errorf("%q has the name %q, want an error that names it: %v", key, name, err)
		}
	}
}

// Keys are ordered as their names are, but for those whose names were cut.
func TestNamesAreInTheOrderOfKeys(t *testing.T) {
	short := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { name, _ := nameOf(key); return isCut(name) })
	for _, a := range short {
		for _, b := range short {
			first, _ := nameOf(a)
			second, _ := nameOf(b)
			if (a < b) != (first < second) {
				t.Errorf("%s and %s have the names %q and %q", a, b, first, second)
			}
		}
	}
	for _, key := range keys {
		name, _ := nameOf(key)
		for _, from := range []string{key, key[:len(key)-1]} {
			if first, err := firstName(from); err != nil || first > name {
				t.Errorf("a range from %s begins at %q, behind the name %q of %s: %v", from, first, name, key, err)
			}
		}
		if after, err := firstName(key + "\x00"); err != nil || !isCut(name) && after <= name {
			t.Errorf("a range behind %s begins at %q, not behind its name: %v", key, after, err)
		}
	}
}

// A short key cannot be chosen so that it has the name of a long one.
func TestNamesOfFullLengthHaveAHash(t *testing.T) {
	long, err := nameOf("/" + strings.Repeat("a", 300))
	if err != nil || len(long) != maxName {
		t.Fatalf("%q, %v", long, err)
	}
	if copied, err := nameOf("/" + long); err != nil || copied == long {
		t.Errorf("a key has the name %q of another: %v", copied, err)
	}
}
