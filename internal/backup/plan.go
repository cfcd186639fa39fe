package backup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// Plan is what restoring a backup does in a cluster. Objects that exist there are never changed.
type Plan struct {
	Create []v1alpha1.WorkloadIdentity
	// Same is the number of identities that exist as they are in the backup.
	Same int
	// Newer are the identities, relying parties and settings that the cluster has otherwise.
	Newer []Difference
	// RelyingParties are those that the KeyRing lacks.
	RelyingParties []identityv1alpha1.RelyingParty
}

// Difference is between an object of the backup and that of the cluster.
type Difference struct {
	Object string // such as shop/cart
	Field  string
	Backup string
	Here   string
}

// Plan compares the backup with the identities and the KeyRing of a cluster.
func (b *Backup) Plan(identities []v1alpha1.WorkloadIdentity, ring identityv1alpha1.KeyRing) Plan {
	var plan Plan
	byName, byUID := map[string]*v1alpha1.WorkloadIdentity{}, map[string]*v1alpha1.WorkloadIdentity{}
	for i := range identities {
		wi := &identities[i]
		byName[nameOf(wi)], byUID[string(wi.UID)] = wi, wi
	}
	for _, wi := range b.Identities {
		here, other := byName[nameOf(&wi)], byUID[string(wi.UID)]
		switch {
		case here != nil:
			different := differences(&wi, here)
			plan.Newer = append(plan.Newer, different...)
			if len(different) == 0 {
				plan.Same++
			}
		case other != nil:
			plan.Newer = append(plan.Newer, Difference{nameOf(&wi), "name", nameOf(&wi), nameOf(other)})
		default:
			plan.Create = append(plan.Create, wi)
		}
	}
	for _, party := range b.KeyRing.RelyingParties {
		at := slices.IndexFunc(ring.Spec.RelyingParties, func(p identityv1alpha1.RelyingParty) bool { return p.Name == party.Name })
		switch {
		case at < 0:
			plan.RelyingParties = append(plan.RelyingParties, party)
		case !sameKeys(party, ring.Spec.RelyingParties[at]):
			plan.Newer = append(plan.Newer, Difference{"KeyRing", "relying party " + party.Name, text(party.KnownKeys), text(ring.Spec.RelyingParties[at].KnownKeys)})
		}
	}
	return plan
}

// Settings returns how the flags of the key controller differ from those at the time of the backup; they are not restored.
func (b *Backup) Settings(ring identityv1alpha1.KeyRing) []Difference {
	if b.KeyRing.Settings == nil || ring.Status.Settings == nil || *b.KeyRing.Settings == *ring.Status.Settings {
		return nil
	}
	return []Difference{{"KeyRing", "settings", text(b.KeyRing.Settings), text(ring.Status.Settings)}}
}

func sameKeys(a, b identityv1alpha1.RelyingParty) bool {
	return equality.Semantic.DeepEqual(slices.Sorted(slices.Values(a.KnownKeys)), slices.Sorted(slices.Values(b.KnownKeys)))
}

func differences(saved, here *v1alpha1.WorkloadIdentity) []Difference {
	var found []Difference
	for _, field := range []struct {
		name        string
		saved, here any
	}{
		{"uid", saved.UID, here.UID},
		{"issuer", saved.Status.Issuer, here.Status.Issuer},
		{"labels", saved.Labels, here.Labels},
		{"annotations", saved.Annotations, here.Annotations},
		{"audiences", saved.Spec.Audiences, here.Spec.Audiences},
		{"target system", saved.Spec.TargetSystem.Type, here.Spec.TargetSystem.Type},
		{"providerConfig", config(saved.Spec.TargetSystem.ProviderConfig), config(here.Spec.TargetSystem.ProviderConfig)},
	} {
		if !equality.Semantic.DeepEqual(field.saved, field.here) {
			found = append(found, Difference{nameOf(saved), field.name, text(field.saved), text(field.here)})
		}
	}
	return found
}

// config is a providerConfig without white space.
func config(raw *runtime.RawExtension) string {
	var compact, escaped bytes.Buffer
	if raw == nil || json.Compact(&compact, raw.Raw) != nil {
		return ""
	}
	json.HTMLEscape(&escaped, compact.Bytes()) // as it is in a file
	return escaped.String()
}

func text(value any) string {
	if plain, ok := value.(string); ok {
		return plain
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}
