package targettest

import (
	"maps"
	"slices"
	"testing"
)

// Fuzz tries bytes as a providerConfig, and strings as one field of an accepted one: nothing panics, and an accepted
// configuration injects nothing that would break a file.
func Fuzz(f *testing.F, suite Suite) {
	f.Helper()
	members := object(f, suite.Accepted[0])
	names := slices.Sorted(maps.Keys(members))
	for _, accepted := range suite.Accepted {
		f.Add(uint8(len(names)), []byte(accepted))
	}
	for i := range names {
		for _, seed := range []string{"", "\n", "x\n[evil]\nrole_arn=y", `"},"x":{"`, "a: b\n- c", "$(HOME)", "\u2028", "\xff", "𝔘"} {
			f.Add(uint8(i), []byte(seed))
			f.Add(uint8(i), append(marshalled(f, members[names[i]]), seed...))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		config := text
		if int(which) < len(names) {
			config = []byte(with(t, members, names[which], string(marshal(t, string(text)))))
		}
		Check(t, suite.Adapter, config)
	})
}

// marshalled is the text of a JSON string without its quotes.
func marshalled(t testing.TB, value []byte) []byte {
	t.Helper()
	if len(value) < 2 || value[0] != '"' {
		t.Fatalf("%s is not a string", value)
	}
	return slices.Clone(value[1 : len(value)-1])
}
