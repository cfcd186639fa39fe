package keys

import (
	"slices"
	"time"
)

// longestTTL is that of relying parties that ignore max-age and cache for a fixed time (step-ca).
const longestTTL = 12 * time.Hour

// Exposure is how long the relying parties of one model act on keys that are not those of the ring.
type Exposure struct {
	// Model is M0 to M5, and Parties describes how these relying parties learn of keys.
	Model, Parties string
	// For is how long it takes them at most; 0 if they are not concerned.
	For time.Duration
	// Unbounded is set if the time has no bound: an admin has to act on the relying party.
	Unbounded bool
}

// RefusedFor returns for how long valid tokens of a spare could be refused if it signed from now on.
func (k Key) RefusedFor(v View) []Exposure {
	v.Settings = v.Settings.withDefaults()
	shown := v.Documents == nil || slices.Contains(v.Documents.Knows, k.ID)
	left := func(period time.Duration) time.Duration {
		wait := period + v.Settings.Staleness + 2*v.Settings.ClockSkew
		if k.PublishedAt.IsZero() || !shown {
			return wait
		}
		return min(wait, max(0, k.PublishedAt.Add(wait).Sub(v.Now)))
	}
	unknown := slices.ContainsFunc(v.Gates, func(gate Gate) bool { return !slices.Contains(gate.Knows, k.ID) })
	return exposures(v.Settings, func(model string, period time.Duration) Exposure {
		switch model {
		case "M0", "M5":
			if !shown {
				return Exposure{For: v.Settings.Staleness}
			}
			return Exposure{}
		case "M4":
			return Exposure{Unbounded: unknown}
		}
		return Exposure{For: left(period)}
	})
}

// AcceptedFor returns for how long tokens of a key could be accepted if it was revoked now, those that a thief makes included.
// Where Unbounded is set, a thief's are accepted until an admin acts, and those that Credence has signed for the time For.
func (k Key) AcceptedFor(v View) []Exposure {
	v.Settings = v.Settings.withDefaults()
	var valid time.Duration
	if bound := k.ExpiryBound(v.Settings, v.Now); !bound.IsZero() {
		valid = max(0, bound.Add(v.Settings.Leeway).Sub(v.Now))
	}
	return exposures(v.Settings, func(model string, period time.Duration) Exposure {
		if period == 0 {
			return Exposure{For: valid, Unbounded: true}
		}
		return Exposure{For: period + v.Settings.Staleness}
	})
}

// exposures calls of for each model; period is how often its relying parties fetch the keys, 0 if the model has no interval.
func exposures(s Settings, of func(model string, period time.Duration) Exposure) []Exposure {
	var all []Exposure
	for _, m := range []struct {
		model, parties string
		period         time.Duration
	}{
		{"M0", "fetch the keys when they meet an unknown one", 0},
		{"M1", "fetch the keys when they meet an unknown one, once the max-age is over", s.MaxAge},
		{"M2", "fetch the keys when the max-age or a time of their own is over", max(s.MaxAge, longestTTL)},
		{"M3", "fetch the keys once in a period", s.PublishPeriod},
		{"M4", "were given a copy of the keys", 0},
		{"M5", "fetch the keys when they meet an unknown one, and forget none", 0},
	} {
		exposure := of(m.model, m.period)
		exposure.Model, exposure.Parties = m.model, m.parties
		all = append(all, exposure)
	}
	return all
}
