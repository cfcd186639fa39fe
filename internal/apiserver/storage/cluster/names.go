package cluster

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

const (
	// maxName is the longest name of an object in Kubernetes, in bytes.
	maxName = 253
	// maxPlain is what is left of a longer name: its hash follows.
	maxPlain = maxName - 32
)

// escapes are the bytes of a key that are another in its name.
var escapes = strings.NewReplacer("/", "0-", "0", "00")

// hashes are written in the lower-case alphabet whose order is that of the bytes.
var hashes = base32.HexEncoding.WithPadding(base32.NoPadding)

// nameOf returns the name of the record of a key. Names are ordered as their keys are, so that a range of keys is a range of names:
// '-', '.', digits and letters stay what they are, but '0' is "00" and '/' is "0-", which is between '.' and '0' as '/' is. A '0' is
// added behind '-' or '.', as a name must not end so. A name that would be too long is cut, and ends with a hash of its key.
func nameOf(key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	name := plainName(key)
	if strings.HasSuffix(name, "-") || strings.HasSuffix(name, ".") {
		name += "0"
	}
	// A name of full length always has a hash: else a key could be chosen whose name is that of another.
	if len(name) >= maxName {
		sum := sha256.Sum256([]byte(key))
		name = name[:maxPlain] + strings.ToLower(hashes.EncodeToString(sum[:20]))
	}
	return name, nil
}

// checkKey reports a character that a name cannot have. Keys of Kubernetes objects with DNS names have none.
func checkKey(key string) error {
	for i := range len(key) {
		if c := key[i]; c != '/' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return fmt.Errorf("invalid key %q: the name of a record must consist of lower case letters, digits, '-', '.' and '/'", key)
		}
	}
	return nil
}

// plainName is the name of a key, or of the beginning of one, without the leading slash that each key has.
func plainName(key string) string {
	return escapes.Replace(strings.TrimPrefix(key, "/"))
}

// firstName is where a range of names begins so that it has all keys from key on. A key may end with a NUL: it comes right after the
// key without it. Of a cut name only the order of what is left is that of keys: what comes before the key must be passed over.
func firstName(key string) (string, error) {
	before, after := strings.CutSuffix(key, "\x00")
	name, err := nameOf(before)
	switch {
	case err != nil:
		return "", err
	case len(name) == maxName:
		return name[:maxPlain], nil
	case after:
		return name + "\x00", nil
	}
	return plainName(before), nil
}

// isCut reports whether a name is one of those whose order is not that of their keys. Names that go on where others were cut are too.
func isCut(name string) bool { return len(name) > maxPlain }
