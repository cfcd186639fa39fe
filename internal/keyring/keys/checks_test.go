package keys

import (
	"fmt"
	"slices"
)

func (w *world) checkRing(ring Ring) {
	if err := ring.Validate(); err != nil {
		w.fail("invalid ring", err.Error())
	}
	published := len(ring.Published())
	w.counts.mostPublished = max(w.counts.mostPublished, published)
	if published > MaxPublished {
		w.fail("too many keys published", fmt.Sprint(published))
	}
	for _, algorithm := range Algorithms() {
		if ring.count(algorithm, Spare) == 0 {
			w.fail("no spare", string(algorithm))
		}
	}
	if w.random.IntN(400) > 0 {
		return
	}
	// A stored ring is the same ring.
	data, err := ring.encodeDocument()
	if err != nil {
		w.fail("ring that can not be written", err.Error())
	}
	again, err := decodeDocument(data)
	if err != nil {
		w.fail("ring that can not be read", err.Error())
		return
	}
	for i := range again.Keys {
		again.Keys[i].Private = ring.Keys[i].Private
	}
	if diff := sameRing(ring, again); diff != "" {
		w.fail("ring that is another one when it is read", diff)
	}
}

func (w *world) checkRemoval(key Key) {
	happened := w.keys[key.ID]
	if slices.ContainsFunc(w.stored.Compromised, func(c Compromised) bool { return c.ID == key.ID }) {
		happened.revoked, happened.revokedAt = true, w.now
		w.counts.revocations++
		return
	}
	happened.removed = true
	w.counts.removals++
	if early := happened.lastExpiry + w.settings.Leeway - w.now; early > 0 {
		w.fail("removed early", fmt.Sprintf("%s by %s", key, early))
	}
}

func (w *world) checkActivation(e Event) {
	w.counts.rotations++
	happened := w.keys[e.Key]
	if e.AcceptRefusals {
		happened.forced = true
		w.counts.forced++
	}
	if age := w.now - happened.published; age < w.settings.PublishPeriod && !happened.forced {
		w.fail("activated before P", fmt.Sprintf("%s after %s", e.Key, age))
	}
}

func (w *world) checkSignature(t token) {
	happened := w.keys[t.key]
	happened.lastExpiry = max(happened.lastExpiry, t.expiry)
	if happened.removed {
		w.fail("signed after removal", string(t.key))
	}
	if happened.revoked && w.now-happened.revokedAt > w.settings.Staleness {
		w.fail("signed after revocation", string(t.key))
	}
	if age := w.now - happened.published; age < w.settings.PublishPeriod && !happened.first && !happened.forced {
		w.fail("signed before P", fmt.Sprintf("%s after %s", t.key, age))
	}
}

func (w *world) verify(t token) {
	happened := w.keys[t.key]
	if happened.revoked {
		w.counts.revoked++
		return
	}
	for _, p := range w.parties {
		w.counts.verifications++
		if p.accepts(w, t.key) {
			continue
		}
		// The user who let a young key sign has accepted that it is refused until every relying party knows it.
		if happened.forced && (p.model == modelSnapshot || w.now-happened.published < w.settings.PublishPeriod+w.settings.Staleness) {
			w.counts.excused++
			continue
		}
		w.fail("refused by "+p.name, fmt.Sprintf("%s, published for %s", t.key, w.now-happened.published))
	}
}

func (w *world) fail(what, example string) {
	if w.failures[what]++; w.failures[what] == 1 {
		w.examples[what] = fmt.Sprintf("%s at %s", example, w.now)
	}
}
