package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/apiserver/storage/transfer"
)

// All are the records of all resources, to copy them.
type All struct {
	client rest.Interface
	mac    *MAC
}

// NewAll returns the records that a client of the host cluster reaches. mac signs and checks them; nil: neither.
func NewAll(client rest.Interface, mac *MAC) All { return All{client, mac} }

// All returns every record, in the order of keys.
func (a All) All(ctx context.Context) ([]*mvccpb.KeyValue, error) {
	found, err := (&records{client: a.client, mac: a.mac}).read(ctx, a.client.Get().AbsPath(path), 0)
	slices.SortFunc(found.kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return found.kvs, err
}

// Create writes the record of a key, and fails if there is one.
func (a All) Create(ctx context.Context, key string, value []byte) error {
	r, err := a.recordsOf(key)
	if err != nil {
		return err
	}
	_, err = r.write(ctx, key, value, 0)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; use the credentials of the API server of Credence, system:serviceaccount:credence-system:credence-apiserver", err)
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		err = transfer.Refusal{Err: err}
	}
	return err
}

// Remove deletes the record of a key, if there is one.
func (a All) Remove(ctx context.Context, key string) error {
	name, err := nameOf(key)
	if err != nil {
		return err
	}
	if err := a.client.Delete().AbsPath(path, name).Do(ctx).Error(); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// recordsOf returns the records of the resource that a key is of: /GROUP/RESOURCE/….
func (a All) recordsOf(key string) (*records, error) {
	parts := strings.SplitN(key, "/", 4)
	if len(parts) != 4 || parts[0] != "" || parts[1] == "" || parts[2] == "" || parts[3] == "" {
		return nil, fmt.Errorf("key %q does not begin with /GROUP/RESOURCE/", key)
	}
	return &records{client: a.client, mac: a.mac, resource: parts[2] + "." + parts[1], prefix: "/" + parts[1] + "/" + parts[2] + "/"}, nil
}

// all returns every record as the host has it, also those of other programs.
func (s *records) all(ctx context.Context) ([]record, error) {
	list, err := read[recordList](ctx, s.client.Get().AbsPath(path))
	if err != nil {
		return nil, fmt.Errorf("read all records: %w", err)
	}
	return list.Items, nil
}
