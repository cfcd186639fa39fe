package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer/keys"
)

// Settings tells of the settings by which keys change.
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

// View is what a status says of all that a decision on the ring depends on, but for the ring and the time. Where the key
// controller has not written a status yet, the settings are the defaults, and the documents show nothing.
func View(object *v1alpha1.KeyRing) keys.View {
	view := keys.View{Gates: Gates(object.Spec.RelyingParties)}
	if told := object.Status.Settings; told != nil {
		view.Settings = keys.Settings{
			RotationPeriod: told.RotationPeriod.Duration, PublishPeriod: told.PublishPeriod.Duration, MaxAge: told.MaxAge.Duration,
			MaxLifetime: told.MaxTokenLifetime.Duration, Leeway: told.Leeway.Duration, Staleness: told.Staleness.Duration,
			ClockSkew: told.ClockSkew.Duration,
		}
	}
	documents := keys.Gate{Name: "the key controller, which has not looked yet"}
	if told := object.Status.Documents; told != nil {
		documents.Name = told.From
		for _, id := range told.Keys {
			documents.Knows = append(documents.Knows, identity.KeyID(id))
		}
	}
	view.Documents = &documents
	return view
}
