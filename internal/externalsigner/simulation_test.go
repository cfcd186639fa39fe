package externalsigner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// simulated is a simulation by a fake clock: a signer that changes keys at random, three replicas with wrong clocks, each with a
// plugin of its own that may be behind, writes that are lost or slow, and relying parties that fetch the documents now and then.
// The signer keeps keys announced for as long as it must, so that every relying party must know the key of each token that a
// replica returns.
type simulated struct {
	random   *rand.Rand
	settings keys.Settings
	now      time.Time

	key       externalsigner.AnnouncedKey
	made      int
	announced []event

	ledger    externalsigner.Ledger
	version   int
	pending   []write
	slowUntil time.Time
	replicas  [3]replica
	documents []identity.KeyID
	parties   [3]party

	signed, withheld, rotations int
}

// event is what the signer announces from a time on; signing is the key that it signs with.
type event struct {
	at      time.Time
	keys    []identity.KeyID
	signing identity.KeyID
}

// write is one that is on its way to the store.
type write struct {
	at     time.Time
	ledger externalsigner.Ledger
	over   int
}

type replica struct {
	offset   time.Duration
	lag      time.Duration
	nextPoll time.Time
	ledger   externalsigner.Ledger
	// published are the keys of the ledger.
	published []identity.KeyID
}

type party struct {
	refetch   time.Duration
	nextFetch time.Time
	known     []identity.KeyID
}

func (s *simulated) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

func newSimulated(t *testing.T, seed uint64, settings, believed keys.Settings) *simulated {
	s := &simulated{random: rand.New(rand.NewPCG(seed, 1)), settings: believed, now: start}
	s.key = announce(t, start, externalsignertest.NewKey("template", identity.ES256)).Published[0]
	s.announced = []event{{at: start, keys: []identity.KeyID{s.newKey()}}}
	s.announced[0].signing = s.announced[0].keys[0]
	for i := range s.replicas {
		s.replicas[i] = replica{offset: s.upTo(2*settings.ClockSkew) - settings.ClockSkew, lag: s.upTo(time.Hour), nextPoll: start}
	}
	for i := range s.parties {
		s.parties[i] = party{refetch: settings.PublishPeriod - time.Duration(i)*time.Hour, nextFetch: start.Add(time.Minute)}
	}
	return s
}

func (s *simulated) newKey() identity.KeyID {
	s.made++
	return identity.KeyID(fmt.Sprintf("key-%04d", s.made))
}

// announcement is the plugin's current answer to a replica.
func (s *simulated) announcement(lag time.Duration) event {
	current := s.announced[0]
	for _, e := range s.announced {
		if !e.at.After(s.now.Add(-lag)) {
			current = e
		}
	}
	return current
}

// change lets the signer add a key, sign with another one, or drop one that it has not signed with for long. It signs with a
// new key at once.
func (s *simulated) change() {
	last := s.announced[len(s.announced)-1]
	next := event{at: s.now, keys: slices.Clone(last.keys), signing: last.signing}
	switch s.random.IntN(3) {
	case 0:
		if len(next.keys) < keys.MaxPublished {
			next.keys = append(next.keys, s.newKey())
			next.signing = next.keys[len(next.keys)-1]
			s.rotations++
		}
	case 1:
		next.signing = next.keys[s.random.IntN(len(next.keys))]
		s.rotations++
	case 2:
		next.keys = slices.DeleteFunc(next.keys, func(id identity.KeyID) bool { return id != next.signing && s.unused(id) })
	}
	s.announced = append(s.announced, next)
}

// unused reports whether no plugin has signed with a key for two days.
func (s *simulated) unused(id identity.KeyID) bool {
	for i, e := range s.announced {
		until := s.now
		if i+1 < len(s.announced) {
			until = s.announced[i+1].at
		}
		if (e.signing == id || e.at.Equal(start)) && until.After(s.now.Add(-2*24*time.Hour)) {
			return false
		}
	}
	return true
}

func (s *simulated) poll(t *testing.T, r *replica) {
	t.Helper()
	r.nextPoll = s.now.Add(s.upTo(s.settings.Staleness))
	current := s.announcement(r.lag)
	announced := externalsigner.Announcement{DataTimestamp: s.now.Add(-r.lag), RefreshHint: time.Minute}
	for _, id := range current.keys {
		key := s.key
		key.ID = id
		announced.Published = append(announced.Published, key)
	}
	// In each round the process may end, before its write or after it.
	for range 3 {
		observed := testkit.Need(s.ledger.Observe(announced, keys.View{Settings: s.settings, Now: s.now.Add(r.offset)}))(t)
		if !observed.Changed || s.random.IntN(4) == 0 {
			break
		}
		if s.now.Before(s.slowUntil) {
			s.pending = append(s.pending, write{at: s.slowUntil, ledger: observed.Ledger, over: s.version})
			return
		}
		s.save(observed.Ledger, s.version)
		if s.random.IntN(4) == 0 {
			return
		}
	}
	r.ledger, r.published = s.ledger, nil
	for _, key := range s.ledger.Keys {
		r.published = append(r.published, key.ID)
	}
}

// save is a compare-and-swap.
func (s *simulated) save(ledger externalsigner.Ledger, over int) {
	if over == s.version {
		s.ledger, s.version = ledger, s.version+1
	}
}

// arrive lets writes that were slow reach the store.
func (s *simulated) arrive() {
	s.pending = slices.DeleteFunc(s.pending, func(w write) bool {
		due := !w.at.After(s.now)
		if due {
			s.save(w.ledger, w.over)
		}
		return due
	})
}

// token has a token signed by a replica, and returns the relying parties that refuse it.
func (s *simulated) token(r *replica) (refused int) {
	id := s.announcement(r.lag).signing
	if r.ledger.MaySign(id, keys.View{Settings: s.settings, Now: s.now.Add(r.offset)}) != nil {
		s.withheld++
		return 0
	}
	s.signed++
	for _, p := range s.parties {
		if !slices.Contains(p.known, id) {
			refused++
		}
	}
	return refused
}

// run simulates a time, and returns how many times a token was refused.
func (s *simulated) run(t *testing.T, length time.Duration) (refused int) {
	t.Helper()
	for end := s.now.Add(length); s.now.Before(end); s.now = s.now.Add(30 * time.Second) {
		if s.random.IntN(1500) == 0 {
			s.change()
		}
		if s.random.IntN(1000) == 0 {
			s.slowUntil = s.now.Add(s.upTo(20 * time.Hour))
		}
		s.arrive()
		for i := range s.replicas {
			r := &s.replicas[i]
			if !r.nextPoll.After(s.now) {
				s.poll(t, r)
			}
			// Each replica puts right what another one wrote into the documents.
			if len(r.published) > 0 {
				s.documents = r.published
			}
		}
		for i := range s.parties {
			if p := &s.parties[i]; !p.nextFetch.After(s.now) {
				p.known, p.nextFetch = s.documents, s.now.Add(p.refetch)
			}
		}
		if s.random.IntN(10) == 0 && s.now.Sub(start) > time.Hour {
			refused += s.token(&s.replicas[s.random.IntN(3)])
		}
	}
	return refused
}

func TestNoTokenIsRefused(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulated(t, seed, settings(t), settings(t))
			if refused := s.run(t, 30*24*time.Hour); refused > 0 {
				t.Errorf("%d refusals of %d tokens", refused, s.signed)
			}
			if s.signed < 500 || s.withheld < 100 || s.rotations < 10 {
				t.Errorf("%d tokens, %d withheld, %d rotations: too little has happened", s.signed, s.withheld, s.rotations)
			}
		})
	}
}

// The simulation detects a wait that is too short: relying parties refetch once a day, and the settings have an hour.
func TestSimulationCanFail(t *testing.T) {
	short := settings(t)
	short.PublishPeriod, short.ClockSkew = time.Hour, time.Second
	if refused := newSimulated(t, 1, settings(t), short).run(t, 10*24*time.Hour); refused == 0 {
		t.Error("no token was refused")
	}
}
