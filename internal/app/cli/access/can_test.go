package access

import "testing"

// A printed command has one argument for a user, whatever the name holds.
func TestArgument(t *testing.T) {
	for name, want := range map[string]string{
		"jane@example.com": "jane@example.com", "system:serviceaccount:a:b": "system:serviceaccount:a:b",
		"jane doe": "'jane doe'", "-n": "'-n'", "x'; touch y; '": `'x'\''; touch y; '\'''`, "": "''",
	} {
		if got := argument(name); got != want {
			t.Errorf("argument(%q) = %s, want %s", name, got, want)
		}
	}
}
