package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Difference is one thing in which documents are not as they should be.
type Difference struct {
	Document string `json:"document"` // openid-configuration or jwks
	// Detail is a sentence for people; keys are named by their kid.
	Detail string `json:"detail"`
}

// Compare returns the differences between got and want; nil if they are the same bytes. Keys come first, then members, then,
// without either, the first byte that differs.
func Compare(want, got Documents) []Difference {
	var differences []Difference
	add := func(document string, details []string) {
		for _, detail := range details {
			differences = append(differences, Difference{Document: document, Detail: detail})
		}
	}
	if !bytes.Equal(want.JWKS, got.JWKS) {
		add("jwks", orBytes(compareKeys(want.JWKS, got.JWKS), want.JWKS, got.JWKS))
	}
	if !bytes.Equal(want.Configuration, got.Configuration) {
		add("openid-configuration", orBytes(compareMembers(want.Configuration, got.Configuration), want.Configuration, got.Configuration))
	}
	return differences
}

func orBytes(details []string, want, got []byte) []string {
	if len(details) > 0 {
		return details
	}
	return []string{firstByte(want, got)}
}

// keySet has the keys of a set in their order.
type keySet struct {
	ids  []string
	keys map[string]map[string]any
}

func parseKeySet(data []byte) (keySet, error) {
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return keySet{}, err
	}
	parsed := keySet{keys: map[string]map[string]any{}}
	for _, key := range set.Keys {
		id, _ := key["kid"].(string)
		parsed.ids = append(parsed.ids, id)
		parsed.keys[id] = key
	}
	return parsed, nil
}

func compareKeys(want, got []byte) []string {
	wanted, err := parseKeySet(want)
	if err != nil {
		return nil
	}
	found, err := parseKeySet(got)
	if err != nil {
		return []string{fmt.Sprintf("is not a key set: %v", err)}
	}
	var details []string
	for _, id := range wanted.ids {
		if _, ok := found.keys[id]; !ok {
			details = append(details, fmt.Sprintf("key %q is missing: tokens that it signs would be refused", id))
		}
	}
	for _, id := range found.ids {
		if _, ok := wanted.keys[id]; !ok {
			details = append(details, fmt.Sprintf("key %q is there, and should not be: tokens that it signed are still accepted", id))
		}
	}
	for _, id := range wanted.ids {
		if other, ok := found.keys[id]; ok {
			for _, member := range differing(wanted.keys[id], other) {
				details = append(details, fmt.Sprintf("key %q is not the same: its %s differs", id, member))
			}
		}
	}
	if len(details) == 0 && !slices.Equal(wanted.ids, found.ids) {
		details = append(details, "the same keys are there in another order, or more than once")
	}
	return details
}

func compareMembers(want, got []byte) []string {
	var wanted, found map[string]any
	if json.Unmarshal(want, &wanted) != nil {
		return nil
	}
	if err := json.Unmarshal(got, &found); err != nil {
		return []string{fmt.Sprintf("is not a JSON object: %v", err)}
	}
	var details []string
	for _, member := range differing(wanted, found) {
		value, present := found[member]
		should, wantedAtAll := wanted[member]
		switch {
		case !present:
			details = append(details, fmt.Sprintf("%s is missing", member))
		case !wantedAtAll:
			details = append(details, fmt.Sprintf("%s is there, and should not be", member))
		default:
			details = append(details, fmt.Sprintf("%s is %s, and should be %s", member, shown(value), shown(should)))
		}
	}
	return details
}

// differing returns the names of the members that are not the same in both, sorted.
func differing(a, b map[string]any) []string {
	names := maps.Clone(a)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, b)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		one, inA := a[name]
		other, inB := b[name]
		return inA == inB && reflect.DeepEqual(one, other)
	})
}

// shown is a value as JSON, cut to what fits into a message.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	const most = 600
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// firstByte names the first byte that differs, with what is around it.
func firstByte(want, got []byte) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	excerpt := func(data []byte) string {
		if at >= len(data) {
			return "nothing"
		}
		return fmt.Sprintf("%q", data[at:min(len(data), at+24)])
	}
	return fmt.Sprintf("means the same, but is not the same bytes: at byte %d of %d there is %s, and should be %s", at, len(got), excerpt(got), excerpt(want))
}
