package keys

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// world is a simulation of one issuer over years: a stored ring, controllers that change it, admins who interfere, replicas
// that sign and publish with the ring that they have read, and relying parties that verify every token at the worst moments.
// Its time is true; each actor has a wall clock of its own that may be wrong. All events follow from the seed alone.
type world struct {
	options
	random *rand.Rand
	now    time.Duration
	queue  queue
	made   uint64

	stored    Ring
	published []identity.PublicKey // of the stored ring
	version   int

	controllers []*actor
	operator    *actor
	replicas    []*replica
	parties     []*party
	snapshot    *party // the one that is the gate

	keys   map[identity.KeyID]*truth
	counts counts
	// failures are counted by what went wrong; examples has the first of each.
	failures map[string]int
	examples map[string]string
}

// options are what the runs of the simulation differ in. The flags after settings take one precaution away.
type options struct {
	seed      uint64
	settings  Settings
	rotations int
	// quiet is how seldom an admin interferes: every three days or so if it is zero.
	quiet time.Duration
	// steadyClocks are never wrong.
	steadyClocks bool
	// refusalsAccepted: operators sometimes let keys sign that are too young.
	refusalsAccepted bool

	// noSnapshot leaves out the relying party that was given a copy of the keys: to wait for it hides much else.
	noSnapshot bool
	// slowWrites take hours every other time.
	slowWrites bool

	ignoreStaleness, ignoreTerms, ignoreGates bool
	// tamper changes each ring that is about to be saved; decided is the time by which it was made.
	tamper func(ring Ring, decided time.Time)
}

// counts are statistics of a run.
type counts struct {
	rotations, revocations, forced, removals       int
	tokens, verifications, excused, revoked        int
	conflicts, crashes, jumps, unsigned, refusedBy int
	saves, mostPublished                           int
}

// truth is what really happened to a key.
type truth struct {
	published  time.Duration
	lastExpiry time.Duration
	revokedAt  time.Duration
	// first keys sign from the start.
	first, forced, revoked, removed bool
}

type token struct {
	key    identity.KeyID
	expiry time.Duration
}

// actor is a process with a clock and settings of its own.
type actor struct {
	offset   time.Duration
	settings Settings
}

// replica signs and publishes with the ring that it read last.
type replica struct {
	actor
	ring      Ring
	published []identity.PublicKey
	// readAt and wallAt are when it was read: truly, as a monotonic clock counts, and by its own clock.
	readAt, wallAt time.Duration
}

func simulate(o options) *world {
	w := &world{
		options: o, random: rand.New(rand.NewPCG(o.seed, 0)),
		keys: map[identity.KeyID]*truth{}, failures: map[string]int{}, examples: map[string]string{},
	}
	w.settings = w.settings.withDefaults()
	w.bootstrap()
	for w.counts.rotations < w.rotations {
		next := heap.Pop(&w.queue).(event)
		w.now = next.at
		next.run()
	}
	return w
}

func (w *world) bootstrap() {
	ring, err := Bootstrap(w.generate, epoch)
	if err != nil {
		panic(err)
	}
	w.store(ring)
	for _, key := range ring.Keys {
		w.keys[key.ID] = &truth{first: key.State == Active}
	}
	for range 2 {
		controller := &actor{settings: w.settings}
		w.controllers = append(w.controllers, controller)
		w.after(w.between(0, time.Hour), func() { w.control(controller) })
		w.jumpNowAndThen(controller)
	}
	w.operator = &actor{settings: w.settings}
	w.jumpNowAndThen(w.operator)
	w.after(w.between(0, 48*time.Hour), func() { w.operate(identity.RS256) })
	for range 3 {
		r := &replica{actor: actor{settings: w.settings}}
		w.replicas = append(w.replicas, r)
		w.read(r)
		w.jumpNowAndThen(&r.actor)
		w.after(w.between(0, time.Hour), func() { w.issueNowAndThen(r) })
	}
	w.meetParties()
	w.after(10*24*time.Hour, w.reconfigure)
}

// epoch is the true time at which a world begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// wall is the time that an actor reads.
func (w *world) wall(a *actor) time.Time { return epoch.Add(w.now + a.offset) }

// jumpNowAndThen sets a clock wrong: two hours at most, the worst most often.
func (w *world) jumpNowAndThen(a *actor) {
	if w.steadyClocks {
		return
	}
	const most = DefaultClockSkew
	switch w.random.IntN(5) {
	case 0:
		a.offset = 0
	case 1:
		a.offset = w.between(-most, most)
	case 2, 3:
		a.offset = -most
	default:
		a.offset = most
	}
	w.counts.jumps++
	w.after(w.between(0, 24*time.Hour), func() { w.jumpNowAndThen(a) })
}

// reconfigure changes the longest lifetime of tokens; each process learns of it in its own time.
func (w *world) reconfigure() {
	lifetime := []time.Duration{12 * time.Hour, 24 * time.Hour, 36 * time.Hour, 48 * time.Hour}[w.random.IntN(4)]
	set := func(a *actor) { w.after(w.between(0, 5*24*time.Hour), func() { a.settings.MaxLifetime = lifetime }) }
	for _, controller := range w.controllers {
		set(controller)
	}
	for _, r := range w.replicas {
		set(&r.actor)
	}
	w.after(w.between(5*24*time.Hour, 20*24*time.Hour), w.reconfigure)
}

// control is one run of a controller. Two of them run, as leader election lets it happen; both may crash at any point,
// and take any time to write.
func (w *world) control(c *actor) {
	pause := w.between(0, 2*time.Hour)
	defer func() { w.after(pause, func() { w.control(c) }) }()
	loaded, version := w.stored, w.version
	if w.crash() {
		return
	}
	view := View{Settings: c.settings, Gates: w.gates(), Now: w.wall(c)}
	plan := loaded.Plan(view)
	if !plan.Due(view.Now) {
		// A controller reads its ring every few seconds, and does what is due, by its clock.
		for _, action := range plan.Actions {
			if len(action.Awaits) == 0 {
				pause = min(pause, action.At.Sub(view.Now))
				break
			}
		}
		return
	}
	change, err := loaded.Step(view, w.generate)
	if err != nil || !change.Changed {
		w.fail("step that was due", fmt.Sprint("changed nothing: ", err))
		return
	}
	if w.crash() {
		return
	}
	pause = w.between(0, time.Minute)
	w.after(w.delay(), func() { w.save(change, version, view.Now) })
}

func (w *world) gates() []Gate {
	if w.ignoreGates || w.noSnapshot {
		return nil
	}
	var known []identity.KeyID
	for id := range w.snapshot.keys {
		known = append(known, id)
	}
	return []Gate{{Name: "snapshot", Knows: known}}
}

// operate is an admin who rotates and revokes, and is sometimes impatient.
func (w *world) operate(algorithm identity.Algorithm) {
	if w.random.IntN(2) == 0 {
		w.after(w.between(0, time.Hour), func() { w.operate(algorithm) })
	} else {
		w.after(w.between(0, 2*max(w.quiet, 72*time.Hour)), func() { w.operate(Algorithms()[w.random.IntN(2)]) })
	}
	loaded, version := w.stored, w.version
	view := View{Settings: w.settings, Gates: w.gates(), Now: w.wall(w.operator)}
	command := Command{Algorithm: algorithm, Cause: Cause{By: "operator", Reason: "simulated"}}
	if active, ok := loaded.Signer(algorithm); ok && w.random.IntN(2) == 0 {
		command.Key = active.ID
	}
	command.AcceptRefusals = w.refusalsAccepted && w.random.IntN(4) == 0
	var change Change
	var err error
	switch w.random.IntN(4) {
	case 0, 1:
		change, err = loaded.Rotate(view, command)
	case 2:
		change, err = loaded.RotateNow(view, command, w.generate)
	default:
		command.Key = loaded.Keys[w.random.IntN(len(loaded.Keys))].ID
		change, err = loaded.Revoke(view, command, w.generate)
	}
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		w.counts.refusedBy++
	case err != nil:
		w.fail("command", err.Error())
	case change.Changed && !w.crash():
		w.after(w.delay(), func() { w.save(change, version, view.Now) })
	}
}

// save is the store's compare-and-swap, and what the simulation knows of the change.
func (w *world) save(change Change, version int, decided time.Time) {
	if w.crash() {
		return
	}
	if version != w.version {
		w.counts.conflicts++
		return
	}
	// Some replicas have read the old ring just now.
	for _, r := range w.replicas {
		if w.random.IntN(2) == 0 && !w.ignoreStaleness {
			w.read(r)
		}
	}
	old, ring := w.stored, change.Ring
	if w.tamper != nil {
		w.tamper(ring, decided)
	}
	w.checkRing(ring)
	w.store(ring)
	w.counts.saves++
	for _, key := range ring.Keys {
		if w.keys[key.ID] == nil {
			w.keys[key.ID] = &truth{published: w.now}
		} else if old.index(key.ID) < 0 {
			w.fail("kid used again", string(key.ID))
		}
	}
	for _, key := range old.Keys {
		if ring.index(key.ID) < 0 {
			w.checkRemoval(key)
		}
	}
	for _, happened := range change.Events {
		if happened.Kind == Activated {
			w.checkActivation(happened)
		}
	}
	w.issueAround(ring)
}

func (w *world) store(ring Ring) {
	w.stored, w.published, w.version = ring, ring.Published(), w.version+1
}

func (w *world) read(r *replica) {
	r.ring, r.published = w.stored, w.published
	r.readAt, r.wallAt = w.now, w.now+r.offset
}

// issueAround has tokens issued at the moments around a change at which it matters.
func (w *world) issueAround(ring Ring) {
	staleness := w.settings.Staleness
	for _, delay := range []time.Duration{0, time.Second, staleness / 2, staleness - time.Second, staleness, staleness + time.Second, 3 * staleness} {
		r := w.replicas[w.random.IntN(len(w.replicas))]
		for _, algorithm := range Algorithms() {
			if w.random.IntN(2) == 0 {
				w.after(delay, func() { w.issue(r, algorithm) })
			}
		}
	}
}

func (w *world) issueNowAndThen(r *replica) {
	w.issue(r, Algorithms()[w.random.IntN(2)])
	w.after(w.between(0, 12*time.Hour), func() { w.issueNowAndThen(r) })
}

// issue has a replica sign, with the ring that it has read unless that is too old, and the token verified from its first to
// its last second.
func (w *world) issue(r *replica, algorithm identity.Algorithm) {
	key, signs := r.ring.Signer(algorithm)
	fresh := key.Terms.maySign(w.now-r.readAt, w.now+r.offset-r.wallAt)
	if w.ignoreStaleness {
		fresh = w.random.IntN(20) > 0
	}
	if !signs || !fresh {
		w.read(r)
		if key, signs = r.ring.Signer(algorithm); !signs {
			w.counts.unsigned++
			return
		}
	}
	longest := min(r.settings.MaxLifetime, key.Terms.complete().MaxLifetime)
	if w.ignoreTerms {
		longest = r.settings.MaxLifetime
	}
	lifetime := []time.Duration{identity.ShortestLifetime, time.Hour, w.between(identity.ShortestLifetime, longest), longest, longest}[w.random.IntN(5)]
	issued := w.wall(&r.actor).Truncate(time.Second).Sub(epoch)
	t := token{key: key.ID, expiry: issued + lifetime.Truncate(time.Second)}
	w.checkSignature(t)
	w.counts.tokens++
	first, last := max(w.now, issued), t.expiry+w.settings.Leeway-time.Nanosecond
	if last < first {
		return
	}
	for _, at := range []time.Duration{first, w.between(first, last), last} {
		w.after(at-w.now, func() { w.verify(t) })
	}
}

func (w *world) crash() bool {
	if w.random.IntN(20) > 0 {
		return false
	}
	w.counts.crashes++
	return true
}

// delay is how long a write takes: mostly less than a second, and sometimes hours.
func (w *world) delay() time.Duration {
	most := 20
	if w.slowWrites {
		most = 2
	}
	switch w.random.IntN(most) {
	case 0:
		return w.between(0, 3*time.Hour)
	case 1, 2:
		return w.between(0, time.Minute)
	default:
		return w.between(0, time.Second)
	}
}

func (w *world) between(from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(w.random.Int64N(int64(to-from)))
}
