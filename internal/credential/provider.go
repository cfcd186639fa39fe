package credential

import (
	"context"
	"errors"
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
	// Caller is the process that asks, mostly Client(). Zero: it is not known, and what it was given before neither.
	Caller Caller
	// Terminal shows notices; required.
	Terminal Terminal
	// Margin is how long before its expiry a credential is no longer served, and what clients are told as its expiry is
	// earlier by it; at most half of the credential's life. 0: DefaultMargin; negative: none.
	Margin time.Duration
	// CostsPerson says that a new credential takes a person, unless there is a state. A client that asks again is given what is kept
	// once more then, before it is taken for one that was refused: some ask twice without that.
	CostsPerson bool
	// LockTimeout is how long to wait for another process. 0: DefaultLockTimeout.
	LockTimeout time.Duration
	// Patience is how long nothing is said meanwhile. 0: DefaultPatience; negative: it is said at once.
	Patience time.Duration
}

// Serve returns a credential for one ask: what is kept if that is fresh, else a new one of the source. Its Expires is what
// the client is to be told. The error is of the class ErrNeedsPerson, ErrRefused or ErrRemembered, or cache.ErrUnsafe if the
// folder is not this user's alone, or an outage. A folder that cannot be used for another reason is told of, and done without.
func (p *Provider) Serve(ctx context.Context, source Source, info ExecInfo) (Credential, error) {
	return p.serve(ctx, source, info, false)
}

// Renew is Serve for a person who asks for a new credential, to be kept: neither what is fresh nor a failure is a reason not to get
// one. Where it cannot be kept the error is ErrNotKept, and nobody is asked in vain as far as that is known before.
func (p *Provider) Renew(ctx context.Context, source Source, info ExecInfo) (Credential, error) {
	return p.serve(ctx, source, info, true)
}

// Kept returns what is kept of a key, if Serve would return it as well without asking the source. It says nothing, whatever
// is wrong: Serve does.
func (p *Provider) Kept(key map[string]string, info ExecInfo) (Credential, bool) {
	if key == nil || p.Folder == "" {
		return Credential{}, false
	}
	folder, err := cache.Open(p.Folder)
	if err != nil {
		return Credential{}, false
	}
	defer func() { _ = folder.Close() }()
	turn := &turn{Provider: p, info: info, caller: p.client(info), folder: folder, key: key, name: cache.NameOf(key)}
	turn.entry, err = turn.load()
	if err != nil || decide(turn.situation()) != serve {
		return Credential{}, false
	}
	return turn.hand(), true
}

func (p *Provider) serve(ctx context.Context, source Source, info ExecInfo, renew bool) (Credential, error) {
	turn := &turn{Provider: p, source: source, info: info, caller: p.client(info), key: source.Key(), renew: renew}
	if turn.key == nil || p.Folder == "" {
		return turn.withoutFolder(ctx, errors.New("there is no folder for it"))
	}
	folder, err := cache.Open(p.Folder)
	if errors.Is(err, cache.ErrUnsafe) {
		return Credential{}, err
	}
	if err != nil {
		if !renew {
			p.Terminal.Notice("nothing can be kept: %v", err)
		}
		return turn.withoutFolder(ctx, err)
	}
	defer func() { _ = folder.Close() }()
	turn.folder, turn.name = folder, cache.NameOf(turn.key)
	return turn.run(ctx)
}

// orDefault is a duration whose zero is the default, and none if it is negative.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
