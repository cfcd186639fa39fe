package keeper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/internal/pki"
)

// bundleKey is the key of a Secret with what is trusted, as cert-manager has it.
const bundleKey = "ca.crt"

// seen is what a look has found: the contents, and the objects that have them.
type seen struct {
	certificates.Found
	secrets map[string]*corev1.Secret // by name
	objects map[string]object
}

// object is one that trusts certificates, as it was seen, or why it could not be.
type object struct {
	reference
	content *unstructured.Unstructured
	err     error
}

// look reads everything, live. A Secret that cannot be read is an error, never a missing one; an object that cannot is one without
// the bundle.
func (k *Keeper) look(ctx context.Context) (seen, error) {
	s := seen{
		Found:   certificates.Found{Certificates: map[string]certificates.Stored{}, Bundles: map[string][][]byte{}},
		secrets: map[string]*corev1.Secret{}, objects: map[string]object{},
	}
	var err error
	if s.Authority, err = k.stored(ctx, s, certificates.AuthoritySecret); err != nil {
		return seen{}, err
	}
	for _, wanted := range k.Wanted {
		if s.Certificates[wanted.Name], err = k.stored(ctx, s, wanted.Secret()); err != nil {
			return seen{}, err
		}
	}
	for _, caller := range callers() {
		content, err := k.Objects.Resource(caller.resource).Get(ctx, caller.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		bundles := [][]byte{nil}
		if err == nil {
			bundles = bundlesOf(content)
		}
		s.objects[caller.String()], s.Bundles[caller.String()] = object{caller, content, err}, bundles
	}
	return s, nil
}

func (k *Keeper) stored(ctx context.Context, s seen, name string) (certificates.Stored, error) {
	secret, err := k.Secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return certificates.Stored{}, nil
	}
	if err != nil {
		return certificates.Stored{}, fmt.Errorf("read Secret %s: %w", name, err)
	}
	s.secrets[name] = secret
	return certificates.Stored{
		Pair:   pki.Pair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]},
		Bundle: secret.Data[bundleKey],
	}, nil
}
