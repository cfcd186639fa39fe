package keys

import (
	"cmp"
	"time"
)

// Terms bound what replicas sign with an active key. They are part of the ring, not of the settings of each replica, since
// it follows from them how long the key must stay published: a replica whose settings allow more must keep to the terms
// until the controller, which knows the same settings, has raised them. Terms are never lowered while a key is active.
// The zero value stands for DefaultMaxLifetime and DefaultStaleness.
type Terms struct {
	// MaxLifetime is the longest lifetime of a token: whole seconds.
	MaxLifetime time.Duration
	// Staleness is how old the snapshot of the ring may be with which a replica signs: whole seconds.
	Staleness time.Duration
}

// MaySign reports whether a replica may sign at now with a ring that it read at read. read must be the time before the
// reading began, and the iat of the token not later than now: a token is then never issued with a ring that was replaced
// longer than Staleness ago, wherever the process is held up in between. Both times should carry the monotonic reading of
// time.Now: the answer is no if by either clock the ring is too old, or was read in the future.
func (t Terms) MaySign(read, now time.Time) bool {
	return t.maySign(now.Sub(read), now.Round(0).Sub(read.Round(0)))
}

// maySign takes the age of a snapshot by two clocks: the monotonic one, which stands still while a machine sleeps, and that
// of the wall, which jumps.
func (t Terms) maySign(monotonic, wall time.Duration) bool {
	limit := t.complete().Staleness
	return 0 <= monotonic && monotonic <= limit && 0 <= wall && wall <= limit
}

func (t Terms) complete() Terms {
	return Terms{MaxLifetime: cmp.Or(t.MaxLifetime, DefaultMaxLifetime), Staleness: cmp.Or(t.Staleness, DefaultStaleness)}
}

// raised returns the terms that allow what either allows.
func (t Terms) raised(to Terms) Terms {
	t, to = t.complete(), to.complete()
	return Terms{MaxLifetime: max(t.MaxLifetime, to.MaxLifetime), Staleness: max(t.Staleness, to.Staleness)}
}
