package externalsignertest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Key is a key of a Fake. Its kid is a name, not a hash.
type Key struct {
	ID       string
	Private  crypto.Signer
	Excluded bool
}

// NewKey makes a key; a failure ends the program, as in a test nothing can be done about it.
func NewKey(id string, algorithm identity.Algorithm) Key {
	private, err := keys.NewPrivate(algorithm)
	if err != nil {
		panic(err)
	}
	return Key{ID: id, Private: private}
}

// Fake is a signer with keys in memory. Its fields may be changed while it serves, by Change.
type Fake struct {
	externaljwt.UnimplementedExternalJWTSignerServer

	mu sync.Mutex
	// State is what it answers from.
	state State
}

// State is what a Fake answers from: the zero value of all that is a func changes nothing.
type State struct {
	// Keys are announced in this order. Signing is the place of the one that signs.
	Keys    []Key
	Signing int
	// DataTimestamp is announced; the zero time stands for now.
	DataTimestamp time.Time
	// RefreshHint and MaxLifetime are in seconds.
	RefreshHint, MaxLifetime int64

	// EditKeys, EditHeader and EditSign change answers before they are sent.
	EditKeys   func(*externaljwt.FetchKeysResponse)
	EditHeader func(map[string]any)
	EditSign   func(*externaljwt.SignJWTResponse)
	// FailKeys and FailSign are answered instead.
	FailKeys, FailSign error
	// HangKeys and HangSign give no answer at all.
	HangKeys, HangSign bool
}

// firstKeys are made once, as RSA keys are slow to make.
var firstKeys = sync.OnceValue(func() []Key {
	return []Key{NewKey("signer/es-1", identity.ES256), NewKey("signer/rs-1", identity.RS256)}
})

// NewFake returns a good signer with a key of each algorithm, of which the ES256 one signs.
func NewFake() *Fake {
	return &Fake{state: State{
		Keys:        slices.Clone(firstKeys()),
		RefreshHint: 60, MaxLifetime: 3600,
	}}
}

// Change edits the state between two calls.
func (f *Fake) Change(edit func(*State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.state)
}

func (f *Fake) current() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// FetchKeys implements the external signer API.
func (f *Fake) FetchKeys(ctx context.Context, _ *externaljwt.FetchKeysRequest) (*externaljwt.FetchKeysResponse, error) {
	state := f.current()
	if state.HangKeys {
		<-ctx.Done()
		return nil, ctx.Err() // an answer might still be in time
	}
	if state.FailKeys != nil {
		return nil, state.FailKeys
	}
	at := state.DataTimestamp
	if at.IsZero() {
		at = time.Now()
	}
	response := &externaljwt.FetchKeysResponse{DataTimestamp: timestamppb.New(at), RefreshHintSeconds: state.RefreshHint}
	for _, key := range state.Keys {
		response.Keys = append(response.Keys, &externaljwt.Key{KeyId: key.ID, Key: spki(key.Private.Public()), ExcludeFromOidcDiscovery: key.Excluded})
	}
	if state.EditKeys != nil {
		state.EditKeys(response)
	}
	return response, nil
}

// Metadata implements the external signer API.
func (f *Fake) Metadata(context.Context, *externaljwt.MetadataRequest) (*externaljwt.MetadataResponse, error) {
	return &externaljwt.MetadataResponse{MaxTokenExpirationSeconds: f.current().MaxLifetime}, nil
}

// Sign implements the external signer API.
func (f *Fake) Sign(ctx context.Context, request *externaljwt.SignJWTRequest) (*externaljwt.SignJWTResponse, error) {
	state := f.current()
	if state.HangSign {
		<-ctx.Done()
		return nil, ctx.Err() // an answer might still be in time
	}
	if state.FailSign != nil {
		return nil, state.FailSign
	}
	key := state.Keys[state.Signing]
	algorithm, err := identity.AlgorithmOf(key.Private.Public())
	if err != nil {
		return nil, err
	}
	header := map[string]any{"alg": string(algorithm), "kid": key.ID, "typ": "JWT"}
	if state.EditHeader != nil {
		state.EditHeader(header)
	}
	data, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	response := &externaljwt.SignJWTResponse{Header: base64.RawURLEncoding.EncodeToString(data)}
	response.Signature, err = signature(key.Private, response.Header+"."+request.GetClaims())
	if err != nil {
		return nil, err
	}
	if state.EditSign != nil {
		state.EditSign(response)
	}
	return response, nil
}

// signature is the last segment of a token.
func signature(private crypto.Signer, signed string) (string, error) {
	digest := sha256.Sum256([]byte(signed))
	raw, err := private.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return "", err
	}
	if _, ok := private.Public().(*ecdsa.PublicKey); ok {
		var parts struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(raw, &parts); err != nil {
			return "", err
		}
		raw = make([]byte, 64)
		parts.R.FillBytes(raw[:32])
		parts.S.FillBytes(raw[32:])
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// Broken returns the same key, but it gives errors instead of signatures.
func Broken(key crypto.Signer) crypto.Signer { return broken{key} }

type broken struct{ crypto.Signer }

func (broken) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("the key is broken")
}
