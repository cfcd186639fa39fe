package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-jose/go-jose/v4"
)

// keySet is the provider's public keys. They are loaded before anything is redeemed: a code or a refresh token that can be used only
// once must not be spent for a token that cannot be verified.
type keySet struct {
	client     *http.Client
	address    string
	algorithms []jose.SignatureAlgorithm
	keys       []jose.JSONWebKey
}

func loadKeys(ctx context.Context, c *http.Client, d *document) (*keySet, error) {
	k := &keySet{client: c, address: d.Keys}
	for _, a := range d.Algorithms {
		k.algorithms = append(k.algorithms, jose.SignatureAlgorithm(a))
	}
	return k, k.load(ctx)
}

func (k *keySet) load(ctx context.Context) error {
	body, err := get(ctx, k.client, k.address)
	if err != nil {
		return fmt.Errorf("load the provider's keys: %w", err)
	}
	keys, err := parseKeys(body)
	if err != nil {
		return fmt.Errorf("load the provider's keys: %w", err)
	}
	k.keys = keys
	return nil
}

// parseKeys returns the public keys for signatures of a key set (RFC 7517 section 5), without those that are of a kind unknown here.
func parseKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("no JSON Web Key Set: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err != nil || !key.Valid() || !key.IsPublic() || (key.Use != "" && key.Use != "sig") {
			continue
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// VerifySignature implements go-oidc's KeySet. A key that is not known yet is looked for once more.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, k.algorithms)
	if err != nil {
		return nil, err
	}
	if len(signed.Signatures) != 1 {
		return nil, errors.New("it has not exactly one signature")
	}
	if payload, ok := k.verify(signed); ok {
		return payload, nil
	}
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	if payload, ok := k.verify(signed); ok {
		return payload, nil
	}
	return nil, fmt.Errorf("no key of %s has made the signature", k.address)
}

func (k *keySet) verify(signed *jose.JSONWebSignature) ([]byte, bool) {
	header := signed.Signatures[0].Header
	for _, key := range k.keys {
		if header.KeyID != "" && key.KeyID != "" && key.KeyID != header.KeyID {
			continue
		}
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}
