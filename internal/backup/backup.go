package backup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Backup is what a file holds.
type Backup struct {
	// Issuer is the one that all tokens of the identities name.
	Issuer    string    `json:"issuer"`
	CreatedAt time.Time `json:"createdAt"`
	// Program is the version of Credence that made the backup.
	Program string `json:"program"`
	// Identities are in the order of namespace and name. Of the metadata they have what a restored one has too, and of the status subject
	// and issuer.
	Identities []v1alpha1.WorkloadIdentity `json:"identities"`
	KeyRing    KeyRing                     `json:"keyRing"`
	// Ring is the ring with its private keys; nil: it is not in the backup.
	Ring *Ring `json:"ring,omitempty"`
}

// KeyRing is what was known of the keys: nothing of it is secret.
type KeyRing struct {
	RelyingParties []identityv1alpha1.RelyingParty `json:"relyingParties,omitempty"`
	// Settings are flags of the key controller. They are not restored, but compared.
	Settings *identityv1alpha1.KeyRingSettings `json:"settings,omitempty"`
	Revoked  []identityv1alpha1.RevokedKey     `json:"revoked,omitempty"`
}

// Ring is a ring as its store keeps it: secret.
type Ring struct {
	Document string                    `json:"document"`
	Private  map[identity.KeyID]string `json:"private"` // PEM
}

// String keeps the keys out of messages.
func (Ring) String() string { return "[redacted]" }

// New returns a backup of objects that were read from a cluster, and the names of identities that are left out: those of another issuer,
// for which the API server signs no tokens.
func New(issuer string, identities []v1alpha1.WorkloadIdentity, ring identityv1alpha1.KeyRing, program string, now time.Time) (b *Backup, left []string) {
	b = &Backup{Issuer: issuer, CreatedAt: now.UTC().Truncate(time.Second), Program: program, Identities: []v1alpha1.WorkloadIdentity{}}
	b.KeyRing = KeyRing{RelyingParties: ring.Spec.RelyingParties, Settings: ring.Status.Settings, Revoked: ring.Status.Revoked}
	for _, wi := range identities {
		if wi.Status.Issuer != issuer {
			left = append(left, nameOf(&wi))
			continue
		}
		b.Identities = append(b.Identities, kept(&wi))
	}
	slices.SortFunc(b.Identities, func(x, y v1alpha1.WorkloadIdentity) int { return cmp.Compare(nameOf(&x), nameOf(&y)) })
	return b, left
}

// kept is what a backup has of an identity. Owners are left out: their uids are of the cluster that is gone, and an identity without
// its owner is deleted.
func kept(wi *v1alpha1.WorkloadIdentity) v1alpha1.WorkloadIdentity {
	return v1alpha1.WorkloadIdentity{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity"},
		ObjectMeta: metav1.ObjectMeta{Namespace: wi.Namespace, Name: wi.Name, UID: wi.UID, Labels: wi.Labels, Annotations: wi.Annotations},
		Spec:       wi.Spec,
		Status:     v1alpha1.WorkloadIdentityStatus{Sub: wi.Status.Sub, Issuer: wi.Status.Issuer},
	}
}

// Only leaves the identities of namespaces, or single ones (shop/cart), and nothing of the KeyRing. It returns the names that match none.
func (b *Backup) Only(names []string) (unknown []string) {
	var left []v1alpha1.WorkloadIdentity
	found := map[string]bool{}
	for _, wi := range b.Identities {
		if slices.Contains(names, wi.Namespace) || slices.Contains(names, nameOf(&wi)) {
			left = append(left, wi)
			found[wi.Namespace], found[nameOf(&wi)] = true, true
		}
	}
	b.Identities, b.KeyRing = left, KeyRing{}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] })
}

// AddRing puts a ring with its private keys into the backup.
func (b *Backup) AddRing(ring keys.Ring) error {
	encoded, err := ring.Encode()
	if err != nil {
		return err
	}
	b.Ring = &Ring{Document: string(encoded.Document), Private: map[identity.KeyID]string{}}
	for id, key := range encoded.Private {
		b.Ring.Private[id] = string(key)
	}
	return nil
}

// Keys returns the ring.
func (r *Ring) Keys() (keys.Ring, error) {
	return keys.Decode([]byte(r.Document), func(id identity.KeyID) ([]byte, error) {
		if key, ok := r.Private[id]; ok {
			return []byte(key), nil
		}
		return nil, fmt.Errorf("the backup has no private key of %s", id)
	})
}

// KeyIDs are the keys of the ring.
func (r *Ring) KeyIDs() []string {
	var ids []string
	for id := range maps.Keys(r.Private) {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// check returns an error unless the backup is one that New could have made.
func (b *Backup) check() error {
	if _, err := identity.ParseIssuer(b.Issuer); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range b.Identities {
		wi := &b.Identities[i]
		subject, err := identity.NewSubject(wi.Namespace, wi.Name, string(wi.UID))
		newer := wi.Annotations[v1alpha1.AnnotationNewerFields]
		switch {
		case newer != "":
			return fmt.Errorf("identity %s: it has fields of a newer version of Credence than the API server is (%s): finish the upgrade, or delete the identity",
				nameOf(wi), newer)
		case err != nil:
			return fmt.Errorf("identity %s: %w", nameOf(wi), err)
		case wi.Status.Sub != string(subject) || wi.Status.Issuer != b.Issuer:
			return fmt.Errorf("identity %s: subject or issuer are not those of its name, its uid and the backup", nameOf(wi))
		case seen[nameOf(wi)] || seen[string(wi.UID)]:
			return fmt.Errorf("identity %s: its name or uid is there twice", nameOf(wi))
		case !equality.Semantic.DeepEqual(kept(wi), *wi):
			return fmt.Errorf("identity %s: it has more than is kept of one", nameOf(wi))
		}
		seen[nameOf(wi)], seen[string(wi.UID)] = true, true
	}
	if b.Ring != nil {
		if _, err := b.Ring.Keys(); err != nil {
			return fmt.Errorf("ring: %w", err)
		}
	}
	return nil
}

func nameOf(wi *v1alpha1.WorkloadIdentity) string {
	return strings.Join([]string{wi.Namespace, wi.Name}, "/")
}
