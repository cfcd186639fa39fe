package keystore

import (
	"strings"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// A stored ring has the same parts wherever it is kept: ring.json (keys.Encoded), and <kid>.pem for each key.
const (
	documentName = "ring.json"
	keySuffix    = ".pem"
)

func keyName(id identity.KeyID) string { return string(id) + keySuffix }

// keyOf returns the key whose private part is kept under a name; false for all other names.
func keyOf(name string) (identity.KeyID, bool) {
	id, isKey := strings.CutSuffix(name, keySuffix)
	return identity.KeyID(id), isKey && keys.WellFormed(identity.KeyID(id))
}
