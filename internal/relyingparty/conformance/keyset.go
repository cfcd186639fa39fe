package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/strictjson"
)

// How many keys of one set are read: an Oracle API gateway takes 10, AWS and Microsoft Entra 100. A set of more than 8
// leaves no space for a rotation there.
const (
	manyKeys = 8
	maxKeys  = 100
)

func keyChecks() []check {
	decoded := []string{"jwks-json"}
	keys := []string{"jwks-keys"}
	return []check{
		{name: "jwks-keys", needs: decoded, judge: keySetKeys},
		{name: "jwks-private-members", needs: keys, judge: keySetPrivateMembers},
		{name: "jwks-members", needs: keys, judge: keySetMembers},
		{name: "jwks-count", needs: keys, judge: keySetCount},
		{name: "jwks-kid", needs: keys, judge: keySetKeyIDs},
		{name: "jwks-use", needs: keys, judge: keySetUse},
		{name: "jwks-algorithm", needs: keys, judge: keySetAlgorithm},
		{name: "jwks-encoding", needs: keys, judge: keySetEncoding},
		{name: "jwks-material", needs: keys, judge: keySetMaterial},
		{name: "jwks-size-of-keys", needs: keys, judge: keySetSizes},
		{name: "jwks-algorithms-listed", needs: []string{"jwks-keys", "configuration-algorithms"}, judge: keySetListed},
	}
}

// publishedKey is one key of the set, by its members.
type publishedKey struct {
	label               string // such as keys[0] (kid "a")
	members             map[string]json.RawMessage
	id, kty, alg, curve string
}

// publishedKeys returns the keys of a set that are JSON objects, or nil.
func publishedKeys(set map[string]json.RawMessage) []publishedKey {
	var raw []json.RawMessage
	if json.Unmarshal(set["keys"], &raw) != nil {
		return nil
	}
	var keys []publishedKey
	for i, item := range raw {
		key := publishedKey{label: fmt.Sprintf("keys[%d]", i)}
		if json.Unmarshal(item, &key.members) != nil || key.members == nil {
			continue
		}
		if key.id, _ = strictjson.Text(key.members["kid"]); key.id != "" {
			key.label += fmt.Sprintf(" (kid %.200q)", key.id)
		}
		key.kty, _ = strictjson.Text(key.members["kty"])
		key.alg, _ = strictjson.Text(key.members["alg"])
		key.curve, _ = strictjson.Text(key.members["crv"])
		keys = append(keys, key)
	}
	return keys
}

// having are the names of the members that are of a kind, sorted.
func (k publishedKey) having(is func(member string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.members)), func(member string) bool { return !is(member) })
}

func keySetKeys(e *evidence, o *outcome) {
	var raw []json.RawMessage
	if err := json.Unmarshal(e.keySet.members["keys"], &raw); err != nil || raw == nil {
		o.fail("missing", `"keys" in %s is missing or not an array (RFC 7517, section 5)`, e.keySet.url)
		return
	}
	if len(raw) == 0 {
		o.fail("empty", `"keys" in %s is empty: every token is refused`, e.keySet.url)
	}
	if len(e.keys) < len(raw) {
		o.fail("not-an-object", `"keys" in %s has an element that is not a JSON object: one such element makes some relying parties refuse the whole set`, e.keySet.url)
	}
	for _, member := range slices.Sorted(maps.Keys(e.keySet.members)) {
		if member != "keys" {
			o.warn("other-member", "%s has the member %.60q beside keys: strict parsers refuse it; leave it out", e.keySet.url, member)
		}
	}
	o.pass("%d", len(raw))
}

func keySetPrivateMembers(e *evidence, o *outcome) {
	for _, key := range e.keys {
		if private := key.having(discovery.IsPrivate); len(private) > 0 {
			o.fail("private-key-published", "A PRIVATE KEY IS PUBLISHED: %s at %s has %s. Anyone can sign tokens with it. Revoke this key now, take it out of the set, and renew its tokens", key.label, e.keySet.url, words(private))
		}
	}
	o.pass("none")
}

// accepted are the members that Google takes in an uploaded key set; with any other it refuses the set.
var accepted = []string{"alg", "crv", "e", "kid", "kty", "n", "use", "x", "y"}

func keySetMembers(e *evidence, o *outcome) {
	for _, key := range e.keys {
		if others := key.having(func(member string) bool { return !slices.Contains(accepted, member) && !discovery.IsPrivate(member) }); len(others) > 0 {
			o.warn("other-member", "%s has %s: Google refuses an uploaded key set with any member but %s; leave it out", key.label, words(others), strings.Join(accepted, ", "))
		}
	}
	o.pass("only what Google takes")
}

func keySetCount(e *evidence, o *outcome) {
	switch count := len(e.keys); {
	case count > maxKeys:
		o.fail("too-many", "there are %d keys: AWS and Microsoft Entra read the first %d, so tokens of the others are refused; remove keys whose last token has expired", count, maxKeys)
	case count > manyKeys:
		o.warn("many", "there are %d keys: an Oracle API gateway reads 10 at most; keep to %d, to leave space for a rotation", count, manyKeys)
	default:
		o.pass("%d of at most %d", count, manyKeys)
	}
}

func keySetKeyIDs(e *evidence, o *outcome) {
	seen := map[string]bool{}
	for _, key := range e.keys {
		switch {
		case key.id == "":
			o.fail("missing", "%s has no kid, or one that is not a string: Google requires one, and others can only guess the key of a token; name it, for instance by the SHA-256 of the public key", key.label)
		case seen[key.id]:
			o.fail("twice", "%s has the kid of another key: relying parties take either of the two; give each key a name of its own, and never use one again", key.label)
		}
		seen[key.id] = true
	}
	o.pass("each key has one of its own")
}

func keySetUse(e *evidence, o *outcome) {
	for _, key := range e.keys {
		raw, present := key.members["use"]
		use, _ := strictjson.Text(raw)
		switch {
		case !present:
			o.warn("missing", `%s has no use: some relying parties take only keys with "sig"`, key.label)
		case use != "sig":
			o.warn("not-sig", `%s has the use %.40q: it verifies no token, and counts as a key; publish keys for signatures ("sig") alone`, key.label, use)
		}
	}
	o.pass("sig")
}

// keySetListed holds the discovery document against the keys.
func keySetListed(e *evidence, o *outcome) {
	listed, _ := strictjson.Texts(e.configuration.members["id_token_signing_alg_values_supported"])
	used := map[string]bool{}
	for _, key := range e.keys {
		algorithm := key.algorithm()
		if algorithm != "" && !slices.Contains(listed, algorithm) && !used[algorithm] {
			o.fail("not-listed", "%s is for %s, which id_token_signing_alg_values_supported does not list: relying parties that go by the list refuse its tokens; list it", key.label, algorithm)
		}
		used[algorithm] = true
	}
	for _, algorithm := range listed {
		if !used[algorithm] {
			o.warn("no-key", "id_token_signing_alg_values_supported lists %.40q, for which there is no key: list the algorithms of the keys", algorithm)
		}
	}
	o.pass("those of the keys")
}
