package keyring_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"slices"
	"testing"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// Published keys and revocations are remembered by the KeyRing and by the documents, each for itself: the KeyRing may be older than they are.
func TestOutside(t *testing.T) {
	const issuer = "https://issuer.example"
	ring, next := keystoretest.Rings()
	device := testkit.Need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	// That of another signer, which chooses its IDs, counts nowhere: no ring could remember it.
	foreign := identity.PublicKey{ID: "device-1", Algorithm: identity.ES256, Key: device.Public()}
	documents := testkit.Need(discovery.New(issuer, append(next.Published(), foreign)))(t)
	place := publication.Directory(t.TempDir())
	gone := discovery.Revoked{ID: "gone", Algorithm: identity.ES256, At: keystoretest.Now()}
	testkit.Must(t, testkit.Err(place.Publish(t.Context(), publication.Issue{Documents: documents, Revoked: []discovery.Revoked{gone}})))
	known := &v1alpha1.KeyRing{}
	for _, key := range ring.Keys {
		known.Status.Keys = append(known.Status.Keys, v1alpha1.KeyStatus{ID: string(key.ID), Algorithm: string(key.Algorithm)})
	}
	for name, c := range map[string]struct {
		object *v1alpha1.KeyRing
		want   []identity.PublicKey
	}{
		"no KeyRing":               {nil, next.Published()},
		"a KeyRing without status": {&v1alpha1.KeyRing{}, next.Published()},
		"an older KeyRing":         {known, slices.Concat(ring.Published(), next.Published())},
	} {
		past := testkit.Need(keyring.Outside(issuer, func(context.Context) (*v1alpha1.KeyRing, error) { return c.object, nil }, place)(t.Context()))(t)
		if len(past.Revoked) != 1 || past.Revoked[0].ID != gone.ID {
			t.Errorf("%s: revoked %v", name, past.Revoked)
		}
		unknown := slices.DeleteFunc(slices.Clone(c.want), func(k identity.PublicKey) bool { return past.Published[k.ID] != "" })
		extra := slices.DeleteFunc(slices.Collect(maps.Keys(past.Published)), func(id identity.KeyID) bool {
			return slices.ContainsFunc(c.want, func(k identity.PublicKey) bool { return k.ID == id })
		})
		if len(extra) > 0 || len(unknown) > 0 {
			t.Errorf("%s: published %v, want %v", name, past.Published, c.want)
		}
	}
}
