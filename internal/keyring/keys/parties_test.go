package keys

import (
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// The models of relying parties, by when they fetch the published keys.
type model int

const (
	// modelUnknown (M0): on every unknown kid, and never else.
	modelUnknown model = iota
	// modelMaxAge (M1): on an unknown kid, but not before the max-age of its copy is over.
	modelMaxAge
	// modelTTL (M2): when what it has is older than the max-age, or than a time of its own; an unknown kid changes nothing.
	modelTTL
	// modelPeriodic (M3): once in a period, whatever happens.
	modelPeriodic
	// modelSnapshot (M4): never; an admin uploads the keys now and then, and the activation of keys waits for that.
	modelSnapshot
	// modelHoarder (M5): on every unknown kid, and forgets no key.
	modelHoarder
)

// party is one relying party.
type party struct {
	name  string
	model model
	// ttl takes the place of the served max-age, and is the period of modelPeriodic.
	ttl  time.Duration
	keys map[identity.KeyID]bool
	// staleAt is when it may or must fetch again.
	staleAt time.Duration
}

func (w *world) meetParties() {
	w.snapshot = &party{name: "M4", model: modelSnapshot}
	w.parties = []*party{
		{name: "M0", model: modelUnknown},
		{name: "M1", model: modelMaxAge},
		{name: "M2", model: modelTTL},
		{name: "M2 of 12h", model: modelTTL, ttl: 12 * time.Hour},
		{name: "M3 of 24h", model: modelPeriodic, ttl: 24 * time.Hour},
		{name: "M5", model: modelHoarder},
	}
	if !w.noSnapshot {
		w.parties = append(w.parties, w.snapshot)
	}
	for _, p := range w.parties {
		p.fetch(w)
		switch p.model {
		case modelPeriodic:
			w.after(w.between(0, p.ttl), func() { p.fetchEveryPeriod(w) })
		case modelSnapshot:
			w.after(w.between(0, 48*time.Hour), func() { p.isUploadedTo(w) })
		}
	}
}

func (p *party) fetchEveryPeriod(w *world) {
	p.fetch(w)
	w.after(p.ttl, func() { p.fetchEveryPeriod(w) })
}

func (p *party) isUploadedTo(w *world) {
	p.fetch(w)
	w.after(w.between(time.Hour, 36*time.Hour), func() { p.isUploadedTo(w) })
}

// accepts reports whether the party has the key of a token, and lets it fetch as its model does.
func (p *party) accepts(w *world, id identity.KeyID) bool {
	known, stale := p.keys[id], w.now >= p.staleAt
	switch p.model {
	case modelUnknown, modelHoarder:
		if !known {
			p.fetch(w)
		}
	case modelMaxAge:
		if !known && stale {
			p.fetch(w)
		}
	case modelTTL:
		if stale {
			p.fetch(w)
		}
	}
	return p.keys[id]
}

// fetch takes the documents from any replica, which serves what it has read within the staleness.
func (p *party) fetch(w *world) {
	r := w.replicas[w.random.IntN(len(w.replicas))]
	ring, published := r.ring, r.published
	if w.now-r.readAt > w.settings.Staleness {
		ring, published = w.stored, w.published
		if !w.ignoreStaleness {
			w.read(r)
		}
	}
	if p.keys == nil || p.model != modelHoarder {
		p.keys = map[identity.KeyID]bool{}
	}
	for _, public := range published {
		p.keys[public.ID] = true
	}
	ttl := p.ttl
	if ttl == 0 {
		ttl = ring.Plan(View{Settings: w.settings, Gates: w.gates(), Now: w.wall(&r.actor)}).MaxAge
	}
	p.staleAt = w.now + ttl
}
