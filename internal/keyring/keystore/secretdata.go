package keystore

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// fill puts the ring into a Secret. Private keys that the ring no longer has are removed; data of other names
// stays.
func (s *Secret) fill(secret *corev1.Secret, encoded keys.Encoded) error {
	data := map[string][]byte{documentName: encoded.Document}
	for id, private := range encoded.Private {
		data[keyName(id)] = private
	}
	for name, value := range secret.Data {
		if _, isKey := keyOf(name); !isKey && name != documentName {
			data[name] = value
		}
	}
	if size := sizeOf(data); size > corev1.MaxSecretSize {
		return fmt.Errorf("save ring in %s: with the ring it would have %d bytes of data, at most %d are allowed: remove the data keys of others",
			s, size, corev1.MaxSecretSize)
	}
	secret.Data = data
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[partOfLabel] = partOf
	return nil
}

// decodeData returns the ring that data holds.
func decodeData(data map[string][]byte) (keys.Ring, error) {
	document, found := data[documentName]
	if !found {
		return keys.Ring{}, fmt.Errorf("data has private keys but no key %s: restore it, or delete the Secret to begin with new keys", documentName)
	}
	ring, err := keys.Decode(document, func(id identity.KeyID) ([]byte, error) {
		private, found := data[keyName(id)]
		if !found {
			return nil, fmt.Errorf("data has no key %s", keyName(id))
		}
		return private, nil
	})
	if err != nil {
		return keys.Ring{}, fmt.Errorf("%s: %w", documentName, err)
	}
	return ring, nil
}

// isEmpty reports whether a Secret holds no part of a ring. One that has lost its ring.json is not empty but damaged.
func isEmpty(secret *corev1.Secret) bool {
	for name := range secret.Data {
		if _, isKey := keyOf(name); isKey || name == documentName {
			return false
		}
	}
	return true
}

// versionOfSecret is the version of the ring in a Secret, or "".
func versionOfSecret(secret *corev1.Secret) string {
	if secret == nil || isEmpty(secret) {
		return ""
	}
	return secret.ResourceVersion
}

// sizeOf counts as the API server does, which bounds the values.
func sizeOf(data map[string][]byte) int {
	size := 0
	for _, value := range data {
		size += len(value)
	}
	return size
}
