package keyring

import (
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxRelyingParties = 100
	maxKnownKeys      = 50
)

func validate(ring *v1alpha1.KeyRing) field.ErrorList {
	errs := validation.ValidateObjectMeta(&ring.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec", "relyingParties")
	if n := len(ring.Spec.RelyingParties); n > maxRelyingParties {
		return append(errs, field.TooMany(path, n, maxRelyingParties))
	}
	seen := sets.New[string]()
	for i, party := range ring.Spec.RelyingParties {
		at := path.Index(i)
		if seen.Has(party.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), party.Name))
		}
		seen.Insert(party.Name)
		for _, message := range utilvalidation.IsDNS1123Label(party.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), party.Name, message))
		}
		errs = append(errs, validateKnownKeys(party.KnownKeys, at.Child("knownKeys"))...)
	}
	return errs
}

func validateKnownKeys(ids []string, path *field.Path) field.ErrorList {
	if len(ids) > maxKnownKeys {
		return field.ErrorList{field.TooMany(path, len(ids), maxKnownKeys)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, id := range ids {
		if seen.Has(id) {
			errs = append(errs, field.Duplicate(path.Index(i), id))
		}
		seen.Insert(id)
		if !keys.WellFormed(identity.KeyID(id)) {
			errs = append(errs, field.Invalid(path.Index(i), wording.Abbreviate(id), "must be the ID of a key: 43 characters of base64url, as status.keys[].id shows it"))
		}
	}
	return errs
}

// unknownKeys warns of keys that the ring does not have. They are legal: a key can be gone by the time that a copy is read.
func unknownKeys(ring *v1alpha1.KeyRing) []string {
	known := sets.New[string]()
	for _, key := range ring.Status.Keys {
		known.Insert(key.ID)
	}
	var warnings []string
	for i, party := range ring.Spec.RelyingParties {
		for j, id := range party.KnownKeys {
			if known.Len() > 0 && !known.Has(id) {
				warnings = append(warnings, fmt.Sprintf("spec.relyingParties[%d].knownKeys[%d]: key %s is not published (any more)", i, j, id))
			}
		}
	}
	return warnings
}
