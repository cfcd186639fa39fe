package keystore

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/internal/keyring/keys"
)

// SecretType is the type of the Secrets that hold a ring. One of any other type is refused: it is not a ring's.
const SecretType corev1.SecretType = "identity.credence.dev/key-ring"

// partOf is the label that the Secret is found by, with its value (Kubernetes' recommended labels).
const (
	partOfLabel = "app.kubernetes.io/part-of"
	partOf      = "credence"
)

// fieldManager owns the fields that Credence writes.
const fieldManager = "credence"

// Secret keeps a ring in one Secret of a cluster, with the data keys ring.json and <kid>.pem for each key. The version of
// the ring is the resourceVersion of the Secret, so that the API server compares and swaps; as keys come and go in the same
// write as ring.json, there is no moment at which they do not belong together. Labels, annotations and data keys of others
// are kept.
//
// A Secret of the type without any of this data is an empty store: where another program makes it (Keep), the rights get and
// update of that one name are enough (and watch, to see changes soon).
type Secret struct {
	client          corev1client.SecretInterface
	namespace, name string
}

// NewSecret returns the store in a Secret. It makes no request yet.
func NewSecret(client corev1client.SecretsGetter, namespace, name string) *Secret {
	return &Secret{client: client.Secrets(namespace), namespace: namespace, name: name}
}

// String names the Secret: "Secret namespace/name".
func (s *Secret) String() string { return "Secret " + s.namespace + "/" + s.name }

// Load implements Store. The Secret is read from the storage of the cluster and not from a cache.
func (s *Secret) Load(ctx context.Context) (keys.Ring, string, error) {
	stored, err := s.get(ctx, "load ring from")
	if err != nil {
		return keys.Ring{}, "", err
	}
	if stored == nil || isEmpty(stored) {
		return keys.Ring{}, "", fmt.Errorf("%s: %w", s, ErrNotFound)
	}
	ring, err := decodeData(stored.Data)
	if err != nil {
		return keys.Ring{}, "", fmt.Errorf("%s: %w: %w", s, ErrUnusable, err)
	}
	return ring, stored.ResourceVersion, nil
}

// Save implements Store.
func (s *Secret) Save(ctx context.Context, ring keys.Ring, expectedVersion string) error {
	encoded, err := ring.Encode()
	if err != nil {
		return fmt.Errorf("save ring: %w", err)
	}
	stored, err := s.get(ctx, "save ring in")
	switch {
	case err != nil:
		return err
	case stored == nil && expectedVersion == "":
		return s.create(ctx, encoded)
	case versionOfSecret(stored) != expectedVersion:
		return fmt.Errorf("save ring in %s: %w", s, ErrConflict)
	}
	return s.update(ctx, stored, encoded)
}

func (s *Secret) create(ctx context.Context, encoded keys.Encoded) error {
	created := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Type:       SecretType,
	}
	if err := s.fill(created, encoded); err != nil {
		return err
	}
	got, err := s.client.Create(silent(ctx), created, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("save ring in %s: %w", s, ErrConflict)
	case err != nil:
		return s.failed(ctx, "save ring in", err)
	}
	return s.checkStored(created, got)
}

// update replaces a Secret that was read, unless it has been replaced since: it carries the resourceVersion that was read.
func (s *Secret) update(ctx context.Context, stored *corev1.Secret, encoded keys.Encoded) error {
	if stored.Immutable != nil && *stored.Immutable {
		return fmt.Errorf("save ring in %s: it is immutable: replace it by one with the same type and data that is not", s)
	}
	replaced := stored.DeepCopy()
	if err := s.fill(replaced, encoded); err != nil {
		return err
	}
	got, err := s.client.Update(silent(ctx), replaced, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsConflict(err) || isMissing(err):
		return fmt.Errorf("save ring in %s: %w", s, ErrConflict)
	case err != nil:
		return s.failed(ctx, "save ring in", err)
	}
	return s.checkStored(replaced, got)
}

// checkStored refuses to take for stored what the answer does not show: admission can change what it was sent, and the client
// takes every answer with the status OK for a Secret.
func (s *Secret) checkStored(sent, got *corev1.Secret) error {
	if got.ResourceVersion == "" || got.Type != sent.Type || !maps.EqualFunc(sent.Data, got.Data, bytes.Equal) {
		return fmt.Errorf("save ring in %s: the API answered with another Secret than it was sent: check what changes it on its way (admission webhooks, proxies)", s)
	}
	return nil
}

// get returns the Secret, or nil if it does not exist. A Secret of another type is ErrUnusable.
func (s *Secret) get(ctx context.Context, operation string) (*corev1.Secret, error) {
	// Without a resourceVersion in its options, a get is answered from storage.
	stored, err := s.client.Get(silent(ctx), s.name, metav1.GetOptions{})
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil:
		return nil, s.failed(ctx, operation, err)
	case stored.ResourceVersion == "":
		// To update without a version is to overwrite whatever there is.
		return nil, fmt.Errorf("%s %s: the API answered without a resourceVersion", operation, s)
	case stored.Type != SecretType:
		return nil, fmt.Errorf("%s %s: %w: its type is %.64q and not %q, so it is not a ring's: give the ring another name",
			operation, s, ErrUnusable, stored.Type, SecretType)
	}
	if size := sizeOf(stored.Data); size > corev1.MaxSecretSize {
		return nil, fmt.Errorf("%s %s: %w: it has %d bytes of data, at most %d are read", operation, s, ErrUnusable, size, corev1.MaxSecretSize)
	}
	return stored, nil
}

// silent keeps the client from logging: at a high verbosity it would log the bodies of requests and answers.
func silent(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.New(nil)) }
