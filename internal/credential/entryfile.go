package credential

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential/cache"
)

// entryFormat begins a file that holds an Entry. The rest of the first line is the SHA-256 of all that follows it, which is
// one JSON object.
const entryFormat = "credence-credential/v1 sha256:"

// errDamaged: a file does not hold an entry of this version, for its name.
var errDamaged = errors.New("it does not hold a credential of this version")

// wireEntry is an Entry as it is on disk.
type wireEntry struct {
	Key        map[string]string   `json:"key"`
	Obtained   time.Time           `json:"obtained,omitzero"`
	Expires    time.Time           `json:"expires,omitzero"`
	Token      string              `json:"token,omitempty"`
	Cert       string              `json:"certificate,omitempty"`
	PrivateKey string              `json:"privateKey,omitempty"`
	State      json.RawMessage     `json:"state,omitempty"`
	Refused    map[string]Refusals `json:"refused,omitempty"`
	Failure    *Failure            `json:"failure,omitempty"`
}

// encodeEntry returns the content of a file.
func encodeEntry(e Entry) ([]byte, error) {
	wire := wireEntry{
		Key: e.Key, Obtained: e.Obtained.UTC(), Expires: e.Credential.Expires.UTC(), Token: e.Credential.Token.Reveal(),
		Cert: string(e.Credential.CertificatePEM), PrivateKey: e.Credential.KeyPEM.Reveal(), State: e.State,
	}
	for cluster, r := range e.Refusals {
		r.At = r.At.UTC()
		wire.Refused = withRefusals(wire.Refused, cluster, r)
	}
	if e.Failure != nil {
		wire.Failure = new(*e.Failure)
		wire.Failure.At = e.Failure.At.UTC()
	}
	body, err := json.Marshal(wire)
	if err != nil {
		return nil, errors.New("encode what is kept: the state of the source is not JSON")
	}
	return append([]byte(header(body)), body...), nil
}

// header is the first line of a file, with its line feed.
func header(body []byte) string {
	sum := sha256.Sum256(body)
	return entryFormat + hex.EncodeToString(sum[:]) + "\n"
}

// decodeEntry reads the content of the file of a name. The error is errDamaged whatever is wrong.
func decodeEntry(name cache.Name, data []byte) (*Entry, error) {
	first, body, found := bytes.Cut(data, []byte("\n"))
	if !found || string(first)+"\n" != header(body) {
		return nil, errDamaged
	}
	var wire wireEntry
	if err := json.Unmarshal(body, &wire); err != nil || cache.NameOf(wire.Key) != name {
		return nil, errDamaged
	}
	entry := &Entry{
		Key: wire.Key, Obtained: wire.Obtained, State: normalState(wire.State), Credential: Credential{Expires: wire.Expires}, Failure: wire.Failure,
	}
	for cluster, r := range wire.Refused {
		if r.Count > 0 {
			entry.Refusals = withRefusals(entry.Refusals, cluster, r)
		}
	}
	if wire.Token != "" {
		entry.Credential.Token = NewSecret(wire.Token)
	}
	if wire.Cert != "" {
		entry.Credential.CertificatePEM = []byte(wire.Cert)
	}
	if wire.PrivateKey != "" {
		entry.Credential.KeyPEM = NewSecret(wire.PrivateKey)
	}
	if entry.has() && entry.Credential.check() != nil {
		return nil, fmt.Errorf("%w: its credential could not be presented", errDamaged)
	}
	if f := entry.Failure; f != nil {
		f.Count = max(f.Count, 1)
	}
	return entry, nil
}

// normalState is nil for JSON's null as well.
func normalState(state json.RawMessage) json.RawMessage {
	if len(state) == 0 || string(bytes.TrimSpace(state)) == "null" {
		return nil
	}
	return state
}
