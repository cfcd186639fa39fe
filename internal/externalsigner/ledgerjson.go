package externalsigner

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/strictjson"
)

// Encode returns the ledger as JSON, ending in a line break. Equal ledgers give equal bytes. An invalid ledger is an error:
// all that is written can be read again. With the longest kids it stays well under the megabyte that a ConfigMap holds.
func (l Ledger) Encode() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	return append(data, '\n'), nil
}

// DecodeLedger reads what Encode wrote. The error names the field that is wrong.
func DecodeLedger(data []byte) (Ledger, error) {
	var ledger Ledger
	if err := strictjson.Known(data, &ledger); err != nil {
		return Ledger{}, fmt.Errorf("decode ledger: %w", err)
	}
	if err := ledger.Validate(); err != nil {
		return Ledger{}, fmt.Errorf("decode ledger: %w", err)
	}
	return ledger, nil
}

// Validate returns nil if the ledger can be published and observed with. The error names the field, as JSON has it.
func (l Ledger) Validate() error {
	if len(l.Keys) > keys.MaxPublished {
		return fmt.Errorf("keys: %d entries, at most %d are published", len(l.Keys), keys.MaxPublished)
	}
	if len(l.Withdrawn) > maxWithdrawn {
		return fmt.Errorf("withdrawn: %d entries, at most %d are kept", len(l.Withdrawn), maxWithdrawn)
	}
	if l.StartedAt.IsZero() && len(l.Keys)+len(l.Withdrawn) > 0 {
		return errors.New("startedAt: missing, though there are keys")
	}
	seen := map[identity.KeyID]bool{}
	for i, key := range l.Keys {
		if err := key.validate(); err != nil {
			return fmt.Errorf("keys[%d].%w", i, err)
		}
		if seen[key.ID] {
			return fmt.Errorf("keys[%d].kid: %.64q is there already", i, key.ID)
		}
		seen[key.ID] = true
	}
	for i, key := range l.Withdrawn {
		if err := key.validate(); err != nil {
			return fmt.Errorf("withdrawn[%d].%w", i, err)
		}
		if seen[key.ID] {
			return fmt.Errorf("withdrawn[%d].kid: %.64q is there already", i, key.ID)
		}
		seen[key.ID] = true
	}
	return nil
}

// validate names the field that is wrong.
func (k LedgerKey) validate() error {
	if !validKeyID(string(k.ID)) {
		return fmt.Errorf("kid: %.64q is not 1 to %d characters of printable ASCII", k.ID, maxKeyIDLength)
	}
	_, algorithm, err := parseSPKI(k.SPKI)
	if err != nil {
		return fmt.Errorf("spki: %w", err)
	}
	if algorithm != k.Algorithm {
		return fmt.Errorf("algorithm: %.64q, but the key is for %s", k.Algorithm, algorithm)
	}
	return nil
}

// validate names the field that is wrong.
func (k WithdrawnKey) validate() error {
	if !validKeyID(string(k.ID)) {
		return fmt.Errorf("kid: %.64q is not 1 to %d characters of printable ASCII", k.ID, maxKeyIDLength)
	}
	if hash, err := base64.RawURLEncoding.Strict().DecodeString(k.SPKISHA256); err != nil || len(hash) != 32 {
		return fmt.Errorf("spkiSHA256: %.64q is not the base64url of a SHA-256 sum", k.SPKISHA256)
	}
	if k.At.IsZero() {
		return errors.New("at: missing")
	}
	return nil
}
