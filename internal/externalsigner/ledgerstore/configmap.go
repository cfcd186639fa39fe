// Package ledgerstore keeps the ledger of an external signer's keys in a ConfigMap. In go ledgers, out come the same ledgers
// with the version by which the API server compares and swaps. It holds no secret, and never sees a private key.
package ledgerstore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/credence-id/credence/internal/externalsigner"
)

// dataKey is the key of the ledger in the ConfigMap.
const dataKey = "ledger.json"

// ConfigMap stores the ledger in a ConfigMap that exists: it is not created, so that the right to create any is not needed.
// Only the API server may write it, because a writer can make a key look older than it is.
type ConfigMap struct {
	Client          corev1client.ConfigMapsGetter
	Namespace, Name string
}

var _ externalsigner.LedgerStore = ConfigMap{}

// String names the ConfigMap.
func (c ConfigMap) String() string { return "ConfigMap " + c.Namespace + "/" + c.Name }

// Load implements externalsigner.LedgerStore.
func (c ConfigMap) Load(ctx context.Context) (externalsigner.Ledger, string, error) {
	stored, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return externalsigner.Ledger{}, "", fmt.Errorf("get %s: %w", c, err)
	}
	text, ok := stored.Data[dataKey]
	if !ok {
		return externalsigner.Ledger{}, "", nil
	}
	ledger, err := externalsigner.DecodeLedger([]byte(text))
	if err != nil {
		return externalsigner.Ledger{}, "", fmt.Errorf("read %s of %s: %w", dataKey, c, err)
	}
	return ledger, stored.ResourceVersion, nil
}

// Save implements externalsigner.LedgerStore.
func (c ConfigMap) Save(ctx context.Context, ledger externalsigner.Ledger, expectedVersion string) error {
	encoded, err := ledger.Encode()
	if err != nil {
		return err
	}
	stored, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", c, err)
	}
	version := stored.ResourceVersion
	if _, kept := stored.Data[dataKey]; !kept {
		version = ""
	}
	if version != expectedVersion {
		return fmt.Errorf("save %s: %w", c, externalsigner.ErrConflict)
	}
	// It carries the version that was read: another writer in between is a conflict.
	changed := stored.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	changed.Data[dataKey] = string(encoded)
	_, err = c.Client.ConfigMaps(c.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("save %s: %w", c, externalsigner.ErrConflict)
	case err != nil:
		return fmt.Errorf("update %s: %w", c, err)
	}
	return nil
}
