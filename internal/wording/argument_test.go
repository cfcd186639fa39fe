package wording_test

import (
	"testing"

	"github.com/credence-id/credence/internal/wording"
)

// A printed command has one argument for a user, whatever the name holds.
func TestArgument(t *testing.T) {
	for name, want := range map[string]string{
		"jane@example.com": "jane@example.com", "system:serviceaccount:a:b": "system:serviceaccount:a:b",
		"jane doe": "'jane doe'", "-n": "'-n'", "x'; touch y; '": `'x'\''; touch y; '\'''`, "": "''",
	} {
		if got := wording.Argument(name); got != want {
			t.Errorf("Argument(%q) = %s, want %s", name, got, want)
		}
	}
}
