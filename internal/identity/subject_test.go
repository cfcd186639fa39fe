package identity

import (
	"strings"
	"testing"
)

const testUID = "12b580fe-1f74-4195-852b-e1a74b03496a"

func TestNewSubject(t *testing.T) {
	// The bytes left for namespace and name: 255 less the prefix, three colons and the uid.
	const room = 185
	cases := []struct {
		test, namespace, name, uid string
		want                       Subject
		refusal                    []string
	}{
		{"the document's sample", "garden-local", "banana-testing", testUID, "gardener.cloud:workloadidentity:garden-local:banana-testing:" + testUID, nil},
		{"255 characters", "ns", strings.Repeat("n", room-2), testUID, Subject("gardener.cloud:workloadidentity:ns:" + strings.Repeat("n", room-2) + ":" + testUID), nil},
		{"256 characters", "ns", strings.Repeat("n", room-1), testUID, "", []string{"256", "255", "186 characters together", "185 fit"}},
		{"not ASCII", "ns", "nåme", testUID, "", []string{"position 36"}},
		{"a space", "ns", "a b", testUID, "", []string{"position 36"}},
		{"no namespace", "", "name", testUID, "", []string{"needs a namespace"}},
		{"no name", "ns", "", testUID, "", []string{"needs a name "}},
		{"no uid", "ns", "name", "", "", []string{"needs a uid"}},
		{"a colon, which would make two identities one", "ns:a", "name", testUID, "", []string{"namespace", "colon"}},
	}
	for _, c := range cases {
		got, err := NewSubject(c.namespace, c.name, c.uid)
		if got != c.want || (err != nil) != (c.refusal != nil) {
			t.Errorf("%s: %q, %v, want %q", c.test, got, err, c.want)
		}
		for _, part := range c.refusal {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error has no %q: %v", c.test, part, err)
			}
		}
		if err == nil && len(got) > MaxSubjectLength {
			t.Errorf("%s: %d characters are accepted", c.test, len(got))
		}
	}
}
