package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/internal/credential/cache"
)

const (
	// DefaultLockTimeout is how long another process may take to get the same credential, a person's log-in included.
	DefaultLockTimeout = 3 * time.Minute
	// DefaultPatience is how long nothing is said while waiting for it.
	DefaultPatience = time.Second
)

// Provider serves asks from what is kept in a folder, or from a source.
type Provider struct {
	// Folder is the path where credentials are kept; it is made if it does not exist. Empty: nothing is kept.
	Folder string
	// Now is the clock; required.
	Now func() time.Time
	// Caller is the process that asks, mostly Parent(). Zero: it is not known, and what it was given before neither.
	Caller Caller
	// Terminal shows notices; required.
	Terminal Terminal
	// Margin is how long before its expiry a credential is no longer served, and what clients are told as its expiry is
	// earlier by it; at most half of the credential's life. 0: DefaultMargin; negative: none.
	Margin time.Duration
	// LockTimeout is how long to wait for another process. 0: DefaultLockTimeout.
	LockTimeout time.Duration
	// Patience is how long nothing is said meanwhile. 0: DefaultPatience; negative: it is said at once.
	Patience time.Duration
}

// Serve returns a credential for one ask: what is kept if that is fresh, else a new one of the source. Its Expires is what
// the client is to be told. The error is of the class ErrNeedsPerson, ErrRefused or ErrRemembered, or cache.ErrUnsafe if the
// folder is not this user's alone, or an outage. A folder that cannot be used for another reason is told of, and done without.
func (p *Provider) Serve(ctx context.Context, source Source, ask Ask) (Credential, error) {
	return p.serve(ctx, source, ask, false)
}

// Renew is Serve for a person who asks for a new credential: neither what is fresh nor a failure is a reason not to get one.
func (p *Provider) Renew(ctx context.Context, source Source, ask Ask) (Credential, error) {
	return p.serve(ctx, source, ask, true)
}

// Kept returns what is kept of a key, if Serve would return it as well without asking the source. It says nothing, whatever
// is wrong: Serve does.
func (p *Provider) Kept(key map[string]string, ask Ask) (Credential, bool) {
	if key == nil || p.Folder == "" {
		return Credential{}, false
	}
	folder, err := cache.Open(p.Folder)
	if err != nil {
		return Credential{}, false
	}
	defer func() { _ = folder.Close() }()
	turn := &turn{Provider: p, ask: ask, caller: p.client(ask), folder: folder, key: key, name: cache.NameOf(key)}
	turn.entry, err = turn.load()
	if err != nil || decide(turn.situation()) != serve {
		return Credential{}, false
	}
	return turn.hand(), true
}

func (p *Provider) serve(ctx context.Context, source Source, ask Ask, renew bool) (Credential, error) {
	turn := &turn{Provider: p, source: source, ask: ask, caller: p.client(ask), key: source.Key(), renew: renew}
	if turn.key == nil || p.Folder == "" {
		return turn.unkept(ctx)
	}
	folder, err := cache.Open(p.Folder)
	if errors.Is(err, cache.ErrUnsafe) {
		return Credential{}, err
	}
	if err != nil {
		p.Terminal.Notice("nothing can be kept: %v", err)
		return turn.unkept(ctx)
	}
	defer func() { _ = folder.Close() }()
	turn.folder, turn.name = folder, cache.NameOf(turn.key)
	return turn.run(ctx)
}

// turn is one ask that is served.
type turn struct {
	*Provider
	source Source
	ask    Ask
	caller Caller
	renew  bool
	folder *cache.Folder
	key    map[string]string
	name   cache.Name
	// entry is what is kept, or nil.
	entry *Entry
	// lock is nil before it is taken, and where it cannot be.
	lock *cache.Lock
	// withheld says that the source was not given the state that is kept.
	withheld bool
	// unreadable is the last error of reading, so that it is told once.
	unreadable string
}

func (t *turn) run(ctx context.Context) (Credential, error) {
	t.read()
	before := t.entry
	if !t.renew {
		switch decide(t.situation()) {
		case serve:
			return t.hand(), nil
		case repeat:
			return Credential{}, t.entry.Failure.remembered()
		}
	}
	if err := t.wait(ctx); err != nil {
		if t.entry.valid(t.Now()) {
			t.Terminal.Notice("%v: served is the credential that is kept, which expires at %s", err, clock(t.entry.Credential.Expires))
			return t.hand(), nil
		}
		return Credential{}, err
	}
	if t.lock == nil {
		credential, err := t.unkept(ctx)
		if err != nil {
			return t.despite(err, false)
		}
		return credential, nil
	}
	defer t.lock.Release()
	t.read()
	if done, credential, err := t.meanwhile(before); done {
		return credential, err
	}
	return t.obtain(ctx)
}

// wait takes the lock. An error says that another process has it; where the system gives no lock there is none.
func (t *turn) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orDefault(t.LockTimeout, DefaultLockTimeout))
	defer cancel()
	lock, err := t.folder.Lock(ctx, t.name, cache.Wait{Patience: orDefault(t.Patience, DefaultPatience), Notice: func(holder int) {
		t.Terminal.Notice("waiting for process %d, which is getting the same credential", holder)
	}})
	if errors.Is(err, cache.ErrBusy) {
		return err
	}
	if err != nil {
		t.Terminal.Notice("nothing can be kept: %v", err)
	}
	t.lock = lock
	return nil
}

// meanwhile answers with what another process came to while this one waited: its credential, also one that is not for
// others, or its failure. Else it answers with what is kept if that is enough.
func (t *turn) meanwhile(before *Entry) (done bool, credential Credential, err error) {
	now := t.Now()
	if t.entry.has() && !t.entry.Obtained.Equal(obtainedAt(before)) && !t.expired(now) {
		return true, t.hand(), nil
	}
	if t.renew {
		return false, Credential{}, nil
	}
	if t.entry != nil && t.entry.Failure != nil {
		f := t.entry.Failure
		if !f.At.Equal(failedAt(before)) && f.concerns(t.ask.Interactive) {
			f.tell(t.caller)
			_ = t.write()
			credential, err := t.despite(f.remembered(), false)
			return true, credential, err
		}
	}
	switch decide(t.situation()) {
	case serve:
		return true, t.hand(), nil
	case repeat:
		return true, Credential{}, t.entry.Failure.remembered()
	}
	return false, Credential{}, nil
}

func (t *turn) expired(now time.Time) bool {
	expires := t.entry.Credential.Expires
	return !expires.IsZero() && !now.Before(expires)
}

// hand returns what is kept, and marks who got it.
func (t *turn) hand() Credential {
	if t.caller.known() {
		t.folder.Mark(t.name, mark(t.caller, t.ask, t.entry))
	}
	return t.told(t.entry)
}

// told is the credential as the client is told of it: it asks again when others would not be served it any more. In the
// margin it is told the whole truth, so that it does not ask for each of its requests.
func (t *turn) told(e *Entry) Credential {
	credential := e.Credential
	if credential.Expires.IsZero() {
		return credential
	}
	if early := credential.Expires.Add(-effectiveMargin(e, t.margin())); early.After(t.Now()) {
		credential.Expires = early
	}
	return credential
}

func (t *turn) situation() situation {
	s := situation{entry: t.entry, now: t.Now(), margin: t.margin(), interactive: t.ask.Interactive, caller: t.caller}
	s.seen = t.caller.known() && t.entry.has() && t.folder.Marked(t.name, mark(t.caller, t.ask, t.entry))
	return s
}

func (p *Provider) margin() time.Duration { return orDefault(p.Margin, DefaultMargin) }

// read reads what is kept. What cannot be trusted or read is told of, and as nothing.
func (t *turn) read() {
	entry, err := t.load()
	if err != nil && t.unreadable != err.Error() {
		t.unreadable = err.Error()
		t.Terminal.Notice("what was kept is not used, and will be replaced: %v", err)
	}
	t.entry = entry
}

func (t *turn) load() (*Entry, error) {
	data, err := t.folder.Read(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entry, err := decodeEntry(t.name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(t.folder.Path(), string(t.name)), err)
	}
	return entry, nil
}

// write writes what is to be kept.
func (t *turn) write() error {
	data, err := encodeEntry(*t.entry)
	if err != nil {
		return err
	}
	return t.lock.Write(data)
}

// unkept asks the source where nothing is kept.
func (t *turn) unkept(ctx context.Context) (Credential, error) {
	request := Request{Ask: t.ask, Terminal: t.Terminal, Keep: func(json.RawMessage) error {
		return errors.New("nothing is kept")
	}}
	credential, _, err := t.source.Obtain(ctx, request)
	if err != nil {
		return Credential{}, err
	}
	now := t.Now()
	if err := checkNew(credential, now); err != nil {
		return Credential{}, err
	}
	return t.told(&Entry{Credential: credential, Obtained: now}), nil
}

// checkNew refuses a credential that a client could not use.
func checkNew(credential Credential, now time.Time) error {
	if err := credential.check(); err != nil {
		return fmt.Errorf("what was obtained cannot be presented: %w", err)
	}
	if !credential.Expires.IsZero() && !now.Before(credential.Expires) {
		return fmt.Errorf("what was obtained expired at %s already, and now is %s: is the clock right?",
			credential.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

func obtainedAt(e *Entry) time.Time {
	if e == nil {
		return time.Time{}
	}
	return e.Obtained
}

func failedAt(e *Entry) time.Time {
	if e == nil || e.Failure == nil {
		return time.Time{}
	}
	return e.Failure.At
}

// orDefault is a duration whose zero is the default, and none if it is negative.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
