package keys

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dense is how often keys rotate in most simulations: as often as the other defaults allow for, so that much happens.
const dense = 72 * time.Hour

// precise settings rely on clocks that are never wrong, so that nothing but the precaution in question stands between the
// issuer and a refused token.
func precise() options {
	return options{seed: 5, settings: Settings{RotationPeriod: dense, ClockSkew: time.Second}, rotations: 300, steadyClocks: true, noSnapshot: true}
}

// No token is refused that is valid, no key is removed or used too early, whatever happens. The private keys are stubs: see
// world.generate.
func TestSimulation(t *testing.T) {
	runs := map[string]options{
		"frequent rotations":    {seed: 1, settings: Settings{RotationPeriod: dense}, rotations: 600},
		"no copies of the keys": {seed: 2, settings: Settings{RotationPeriod: dense}, rotations: 600, noSnapshot: true},
		"accepted refusals":     {seed: 3, settings: Settings{RotationPeriod: dense}, rotations: 600, refusalsAccepted: true},
		"defaults":              {seed: 4, rotations: 100, quiet: 120 * 24 * time.Hour},
		"steady clocks":         precise(),
		"slow writes":           {seed: 6, settings: Settings{RotationPeriod: dense, ClockSkew: time.Second}, rotations: 300, steadyClocks: true, noSnapshot: true, slowWrites: true},
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := run.settings.Complete(); err != nil {
				t.Fatal(err)
			}
			w := simulate(run)
			for what, n := range w.failures {
				t.Errorf("%s: %d times, first %s", what, n, w.examples[what])
			}
			c := w.counts
			if c.removals == 0 || c.revocations == 0 || c.conflicts == 0 || c.crashes == 0 || (c.unsigned == 0 && run.quiet == 0) ||
				(c.jumps > 0) == run.steadyClocks || (c.forced > 0) != run.refusalsAccepted {
				t.Errorf("the run has not seen all that it should: %+v", c)
			}
			t.Logf("%d days: %+v", w.now/(24*time.Hour), c)
		})
	}
}

// Each precaution is needed: without it the simulation finds what it is for.
func TestSimulationFailsWithout(t *testing.T) {
	without := func(change func(o *options)) options {
		o := precise()
		change(&o)
		return o
	}
	cases := map[string]struct {
		run  options
		want []string
	}{
		// A max-age that ends with the next change does not help: a requested rotation cannot be foreseen.
		"a publish period above max-age": {
			without(func(o *options) { o.settings.PublishPeriod, o.rotations = time.Minute, 600 }),
			[]string{"refused by M2", "refused by M2 of 12h", "refused by M3 of 24h"},
		},
		"keys that stay until their tokens expire": {
			without(func(o *options) {
				o.tamper = func(ring Ring, _ time.Time) {
					for i, key := range ring.Keys {
						if !key.LastExpiry.IsZero() {
							ring.Keys[i].LastExpiry = key.RetiredAt.Add(key.Terms.MaxLifetime / 2)
						}
					}
				}
			}),
			[]string{"removed early", "refused by M0", "refused by M1", "refused by M2", "refused by M2 of 12h", "refused by M3 of 24h"},
		},
		"a bound on the age of snapshots": {
			without(func(o *options) { o.ignoreStaleness = true }),
			[]string{"signed after removal", "signed after revocation", "removed early", "refused by M0"},
		},
		"the terms of the ring": {
			without(func(o *options) { o.ignoreTerms, o.rotations = true, 600 }),
			[]string{"removed early", "refused by M2"},
		},
		"the gate": {
			without(func(o *options) { o.noSnapshot, o.ignoreGates = false, true }),
			[]string{"refused by M4"},
		},
		"room for clocks that jump": {
			without(func(o *options) { o.steadyClocks = false }),
			[]string{"activated before P", "signed before P", "removed early", "refused by M2", "refused by M3 of 24h"},
		},
		// The times are those of the decision then, and writes may take hours.
		"confirmation of what is published": {
			without(func(o *options) {
				o.slowWrites, o.rotations = true, 600
				o.tamper = func(ring Ring, decided time.Time) {
					for i, key := range ring.Keys {
						if key.State == Spare && key.PublishedAt.IsZero() {
							ring.Keys[i].PublishedAt = decided
						}
					}
				}
			}),
			[]string{"activated before P", "signed before P"},
		},
		"confirmation of what has retired": {
			without(func(o *options) {
				o.slowWrites = true
				settings := o.settings.withDefaults()
				o.tamper = func(ring Ring, _ time.Time) {
					for i, key := range ring.Keys {
						if key.State == Retiring {
							ring.Keys[i].LastExpiry = key.RetiredAt.Add(settings.expiryBound(key.Terms))
						}
					}
				}
			}),
			[]string{"removed early", "refused by M2"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := simulate(c.run)
			for _, what := range c.want {
				if w.failures[what] == 0 {
					t.Errorf("%s: never", what)
				}
			}
			t.Log(w.failures)
		})
	}
}

func TestSimulationFollowsFromItsSeed(t *testing.T) {
	run := func(seed uint64) string {
		w := simulate(options{seed: seed, settings: Settings{RotationPeriod: dense}, rotations: 20, refusalsAccepted: true})
		return fmt.Sprint(w.now, w.counts, w.failures, w.stored.History)
	}
	if diff := cmp.Diff(run(1), run(1)); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if run(1) == run(2) {
		t.Error("two seeds gave the same run")
	}
}
