package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Settings describes the settings by which keys change.
func Settings(s keys.Settings) v1alpha1.KeyRingSettings {
	return v1alpha1.KeyRingSettings{
		RotationPeriod:   metav1.Duration{Duration: s.RotationPeriod},
		PublishPeriod:    metav1.Duration{Duration: s.PublishPeriod},
		MaxAge:           metav1.Duration{Duration: s.MaxAge},
		MaxTokenLifetime: metav1.Duration{Duration: s.MaxLifetime},
		Leeway:           metav1.Duration{Duration: s.Leeway},
		Staleness:        metav1.Duration{Duration: s.Staleness},
		ClockSkew:        metav1.Duration{Duration: s.ClockSkew},
	}
}

// View is the input of a decision on the ring, as of a status, without the ring and the time. Before the key
// controller's first status, the settings are the defaults, and the documents show nothing.
func View(object *v1alpha1.KeyRing) keys.View {
	view := keys.View{Gates: Gates(object.Spec.RelyingParties)}
	if described := object.Status.Settings; described != nil {
		view.Settings = keys.Settings{
			RotationPeriod: described.RotationPeriod.Duration, PublishPeriod: described.PublishPeriod.Duration, MaxAge: described.MaxAge.Duration,
			MaxLifetime: described.MaxTokenLifetime.Duration, Leeway: described.Leeway.Duration, Staleness: described.Staleness.Duration,
			ClockSkew: described.ClockSkew.Duration,
		}
	}
	documents := keys.Gate{Name: "the key controller, which has not looked yet"}
	if described := object.Status.Documents; described != nil {
		documents.Name = described.From
		for _, id := range described.Keys {
			documents.Knows = append(documents.Knows, identity.KeyID(id))
		}
	}
	view.Documents = &documents
	return view
}
