package transfer

import (
	"context"
	"fmt"
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd is what lies below a prefix in an etcd.
type Etcd struct {
	client *clientv3.Client
	prefix string // with one slash, at the beginning
}

// NewEtcd returns what the client has below prefix, the --etcd-prefix of the API server.
func NewEtcd(client *clientv3.Client, prefix string) Etcd {
	return Etcd{client, path.Join("/", prefix)}
}

// All implements Store.
func (e Etcd) All(ctx context.Context) ([]*mvccpb.KeyValue, error) {
	found, err := e.client.Get(ctx, e.prefix+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list %s/ of etcd: %w", e.prefix, err)
	}
	for _, kv := range found.Kvs {
		kv.Key = []byte(strings.TrimPrefix(string(kv.Key), e.prefix))
	}
	return found.Kvs, nil
}

// Create implements Store.
func (e Etcd) Create(ctx context.Context, key string, value []byte) error {
	key = e.prefix + key
	done, err := e.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, string(value))).Commit()
	if err == nil && !done.Succeeded {
		err = Refusal{fmt.Errorf("etcd has a value of %s already", key)}
	}
	return err
}

// Remove implements Store.
func (e Etcd) Remove(ctx context.Context, key string) error {
	_, err := e.client.Delete(ctx, e.prefix+key)
	return err
}
