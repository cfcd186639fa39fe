package credential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/internal/credential/cache"
)

// turn is the handling of one request.
type turn struct {
	*Provider
	source Source
	info   ExecInfo
	caller Caller
	renew  bool
	folder *cache.Folder
	key    map[string]string
	name   cache.Name
	// entry is what is kept, or nil.
	entry *Entry
	// lock is nil before it is taken, and where it cannot be.
	lock *cache.Lock
	// withheld reports whether the source was not given the stored state.
	withheld bool
	// unreadable is the last error of reading, so that its notice is given once.
	unreadable string
}

func (t *turn) run(ctx context.Context) (Credential, error) {
	t.read()
	before := t.entry
	if !t.renew {
		if done, credential, err := t.stored(); done {
			return credential, err
		}
	}
	if err := t.wait(ctx); err != nil {
		if !t.renew && t.entry.valid(t.Now()) {
			t.Terminal.Notice("%v: served is the credential that is kept, which expires at %s", err, clock(t.entry.Credential.Expires))
			return t.hand(), nil
		}
		return Credential{}, err
	}
	if t.lock == nil {
		if t.renew {
			return t.withoutFolder(ctx, errors.New("there is no lock for it"))
		}
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

// wait takes the lock. It returns an error if another process has it; where the system has no locks it leaves lock nil.
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
	if t.entry.has() && !t.entry.Obtained.Equal(obtainedAt(before)) && (t.entry.Credential.Expires.IsZero() || t.entry.valid(t.Now())) {
		return true, t.hand(), nil
	}
	if t.renew {
		return false, Credential{}, nil
	}
	if t.entry != nil && t.entry.Failure != nil {
		f := t.entry.Failure
		if !f.At.Equal(failedAt(before)) && f.concerns(t.info.Interactive) {
			f.addCaller(t.caller)
			_ = t.write()
			credential, err := t.despite(f.remembered(), false)
			return true, credential, err
		}
	}
	return t.stored()
}

// stored answers with what is kept, if that is enough.
func (t *turn) stored() (done bool, credential Credential, err error) {
	switch decide(t.situation()) {
	case serve:
		return true, t.hand(), nil
	case serveAgain:
		return true, t.handAgain(), nil
	case repeat:
		return true, Credential{}, t.entry.Failure.remembered()
	}
	return false, Credential{}, nil
}

// hand returns the stored credential, and marks its client.
func (t *turn) hand() Credential {
	if t.caller.known() {
		t.folder.Mark(t.name, mark(t.caller, t.info, t.entry))
	}
	return t.withEarlyExpiry(t.entry)
}

// handAgain is hand for a client whose server seems to refuse the stored credential.
func (t *turn) handAgain() Credential {
	hint := ""
	if t.info.Cluster == nil {
		hint = "; the client does not name its cluster, so that this may be because of another one: set provideClusterInfo in the kubeconfig"
	}
	t.Terminal.Notice("the server seems to refuse this credential, as it did the one before; it is served until %s, when the next one may be got%s",
		clock(t.situation().refusals().until()), hint)
	return t.hand()
}

// withEarlyExpiry is the credential with the expiry for the client: the client requests again when others would not be served it any
// more. In the margin it gets the real expiry, so that it does not run the program for each of its requests.
func (t *turn) withEarlyExpiry(e *Entry) Credential {
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
	s := situation{entry: t.entry, now: t.Now(), margin: t.margin(), newerThan: t.NewerThan, alternatives: t.Alternatives, interactive: t.info.Interactive, caller: t.caller, cluster: t.info.cluster()}
	s.seen = t.caller.known() && t.entry.has() && t.folder.Marked(t.name, mark(t.caller, t.info, t.entry)) >= t.maxServes()
	return s
}

// maxServes is how often a client is served the stored credential until a repeated request means that it was refused.
func (t *turn) maxServes() int {
	if t.CostsPerson && t.entry.State == nil {
		return 2
	}
	return 1
}

func (p *Provider) margin() time.Duration { return orDefault(p.Margin, DefaultMargin) }

// read reads the stored entry. An entry that cannot be trusted or read gives a notice, and is ignored.
func (t *turn) read() {
	entry, err := t.load()
	if err != nil && t.unreadable != err.Error() {
		t.unreadable = err.Error()
		t.Terminal.Notice("the kept credential is not used, and will be replaced: %v", err)
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
