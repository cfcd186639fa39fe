package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// KeyNamespace and KeySecret name the Secret with the key of MACs.
	KeyNamespace = "credence-system"
	KeySecret    = "credence-records"
	// keyEntry is the key in its data; enforcedEntry is there once everything was signed.
	keyEntry      = "key"
	enforcedEntry = "enforced"
	// attempts bounds how often a write is tried again because another server came first.
	attempts = 5
)

// errKeyLost: records were signed with a key that is not stored any more.
var errKeyLost = errors.New("records are signed with the key of Secret " + KeySecret + ", which is gone: restore it; or, if all that is stored is what it should be, a cluster admin starts the API server once with --sign-records")

// Keys keep the key of MACs in a Secret.
type Keys struct {
	Secrets corev1client.SecretInterface
	Records rest.Interface
}

// Read returns the stored MAC; nil if there is no key, or this user may not read it.
func (k Keys) Read(ctx context.Context) (*MAC, error) {
	stored, err := k.Secrets.Get(ctx, KeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of records: %w", err)
	}
	return macOf(stored)
}

func macOf(stored *corev1.Secret) (*MAC, error) {
	key, found := stored.Data[keyEntry]
	if !found {
		return nil, nil
	}
	if len(key) != sha256.Size {
		return nil, fmt.Errorf("the Secret %s has a key of %d bytes, not %d: restore it", KeySecret, len(key), sha256.Size)
	}
	return NewMAC(key, string(stored.Data[enforcedEntry]) == "true"), nil
}

// Open returns the stored MAC, and makes a missing key. It is enforced if nothing was stored before. With sign, everything
// that is stored is signed, if that was not done before.
func (k Keys) Open(ctx context.Context, sign bool) (*MAC, error) {
	mac, err := k.Read(ctx)
	if err != nil {
		return nil, err
	}
	made := mac == nil
	if made {
		if mac, err = k.make(ctx, sign); err != nil {
			return nil, err
		}
	}
	if sign && !mac.enforced.Load() {
		if err := k.signAll(ctx, mac, made); err != nil {
			return nil, err
		}
		mac.enforced.Store(true)
		if err := k.save(ctx, mac); err != nil {
			return nil, err
		}
	}
	if !mac.enforced.Load() {
		klog.FromContext(ctx).Info("Records of an earlier version are not signed, and those that other programs make are not refused: start an API server once with --sign-records", "secret", KeySecret)
	}
	return mac, nil
}

// make stores a new key. Without sign, no record may be signed with a former one.
func (k Keys) make(ctx context.Context, sign bool) (*MAC, error) {
	stored, err := (&records{client: k.Records}).all(ctx)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		if _, signed := stored[i].Metadata.Annotations[macAnnotation]; signed && !sign {
			mac, err := k.Read(ctx) // another server may have made it meanwhile
			if mac == nil && err == nil {
				err = errKeyLost
			}
			return mac, err
		}
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	if err := k.save(ctx, NewMAC(key, len(stored) == 0)); err != nil {
		return nil, err
	}
	return k.Read(ctx)
}

// save stores a MAC, unless another key is stored: of servers that start at once, one makes the key.
func (k Keys) save(ctx context.Context, mac *MAC) error {
	for range attempts {
		stored, err := k.Secrets.Get(ctx, KeySecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// By server-side apply: the right to create is checked with the name.
			stored, err = k.Secrets.Apply(ctx, corev1apply.Secret(KeySecret, KeyNamespace).WithType(corev1.SecretTypeOpaque), metav1.ApplyOptions{FieldManager: "credence-apiserver"})
		}
		if err != nil {
			return fmt.Errorf("store the key of records: %w", err)
		}
		if key, found := stored.Data[keyEntry]; found && !bytes.Equal(key, mac.key) {
			return nil
		}
		stored.Data = map[string][]byte{keyEntry: mac.key}
		if mac.enforced.Load() {
			stored.Data[enforcedEntry] = []byte("true")
		}
		if _, err = k.Secrets.Update(ctx, stored, metav1.UpdateOptions{}); err == nil || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return fmt.Errorf("store the key of records: another program changes Secret %s again and again", KeySecret)
}

// signAll signs what is stored without a MAC, or with that of a key that is lost.
func (k Keys) signAll(ctx context.Context, mac *MAC, made bool) error {
	for range attempts {
		stored, err := (&records{client: k.Records}).all(ctx)
		if err != nil {
			return err
		}
		left := 0
		for i := range stored {
			r := &stored[i]
			given, signed := r.Metadata.Annotations[macAnnotation]
			if signed && (!made || given == mac.of(r.Metadata.Name, r.Key, r.Value)) {
				continue
			}
			left++
			revision, err := parseRevision(r.Metadata.ResourceVersion)
			if err != nil {
				return err
			}
			of, err := (All{client: k.Records, mac: mac}).recordsOf(r.Key)
			if err != nil {
				return err
			}
			if _, err := of.write(ctx, r.Key, r.Value, revision); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("sign record %s: %w", r.Metadata.Name, err)
			}
		}
		if left == 0 {
			return nil
		}
	}
	return errors.New("sign records: another program writes records without signing them: stop API servers of earlier versions")
}

// Follow notices every period that another server has signed everything, and stores the key again where it was lost, until ctx is done.
func (k Keys) Follow(ctx context.Context, mac *MAC, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := k.look(ctx, mac)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The key of records could not be looked at")
		}
	}
}

// lookLimit is how long a look at the key may take: one that hangs must not be the last.
const lookLimit = 10 * time.Second

func (k Keys) look(ctx context.Context, mac *MAC) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	stored, err := k.Read(ctx)
	switch {
	case err == nil && stored == nil:
		return k.save(ctx, mac)
	case err == nil && !bytes.Equal(stored.key, mac.key):
		return fmt.Errorf("the Secret %s has another key than this server: restart all API servers, or restore the former key", KeySecret)
	case err == nil && stored.enforced.Load():
		mac.enforced.Store(true)
	}
	return err
}
