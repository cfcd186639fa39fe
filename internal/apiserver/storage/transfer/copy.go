// Package transfer copies what the API server stores from one storage to another. In go two storages, out comes how many objects were
// copied; values are not changed. It never writes to the source, and never to a target that holds anything.
package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Store is a storage. Keys begin with the group of the object, such as /authentication.gardener.cloud/workloadidentities/shop/cart.
type Store interface {
	// All returns everything that is stored, in the order of keys.
	All(context.Context) ([]*mvccpb.KeyValue, error)
	// Create stores a value. It returns a Refusal if the key has one; after an error that is no Refusal the value may be stored.
	Create(ctx context.Context, key string, value []byte) error
	// Remove removes a key, which need not be there.
	Remove(ctx context.Context, key string) error
}

// Refusal is an error of a storage that has changed nothing.
type Refusal struct{ Err error }

func (r Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the storage's own error.
func (r Refusal) Unwrap() error { return r.Err }

// removePatience is how long it may take to remove what a copy that failed has written.
const removePatience = time.Minute

// Copy copies everything in from to to, reads both again, and returns the number of objects. If it fails, it removes what it wrote.
func Copy(ctx context.Context, from, to Store) (int, error) {
	source, err := from.All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the source: %w", err)
	}
	if len(source) == 0 {
		return 0, errors.New("nothing is stored in the source: check --from, and --etcd-prefix if it is an etcd")
	}
	for _, kv := range source {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(kv.Value, &object); err != nil {
			return 0, fmt.Errorf("%s in the source is not JSON: it is encrypted or damaged; of an etcd with --encryption-provider-config, decrypt it first: make identity its first provider, and write each object anew", kv.Key)
		}
	}
	target, err := to.All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the target: %w", err)
	}
	if len(target) > 0 {
		return 0, fmt.Errorf("the target is not empty: it holds %d objects, such as %s; nothing was changed", len(target), target[0].Key)
	}
	written := 0
	if err := fill(ctx, from, to, source, &written); err != nil {
		return 0, errors.Join(err, empty(ctx, to, source[:written]))
	}
	return written, nil
}

// fill writes the source to the target, counts what it wrote or may have written, and verifies both.
func fill(ctx context.Context, from, to Store, source []*mvccpb.KeyValue, written *int) error {
	for _, kv := range source {
		err := to.Create(ctx, string(kv.Key), kv.Value)
		if !errors.As(err, &Refusal{}) {
			*written++ // also after a timeout: the target may have stored the value
		}
		if err != nil {
			return fmt.Errorf("write %s to the target: %w", kv.Key, err)
		}
	}
	copied, err := to.All(ctx)
	if err != nil {
		return fmt.Errorf("verify the target: %w", err)
	}
	if !slices.EqualFunc(source, copied, sameValue) {
		return fmt.Errorf("the target holds other objects than were written to it (%d, want %d): another program writes to it, such as an API server of Credence; stop it", len(copied), len(source))
	}
	again, err := from.All(ctx)
	if err != nil {
		return fmt.Errorf("read the source again: %w", err)
	}
	if !slices.EqualFunc(source, again, func(a, b *mvccpb.KeyValue) bool { return sameValue(a, b) && a.ModRevision == b.ModRevision }) {
		return errors.New("the source was changed meanwhile: an API server of Credence still runs on it; stop it")
	}
	return nil
}

func sameValue(a, b *mvccpb.KeyValue) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
}

// empty removes what was written, also if ctx has ended.
func empty(ctx context.Context, to Store, written []*mvccpb.KeyValue) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	for i, kv := range written {
		if err := to.Remove(ctx, string(kv.Key)); err != nil {
			return fmt.Errorf("remove what was written to the target: %w; %d objects are left in it, from %s on", err, len(written)-i, kv.Key)
		}
	}
	return nil
}
