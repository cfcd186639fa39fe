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
	// DefaultPatience is the time before a notice of waiting.
	DefaultPatience = time.Second
)

// Provider serves requests from a folder, or from a source.
type Provider struct {
	// Folder is the path where credentials are stored; it is made if it does not exist. Empty: nothing is stored.
	Folder string
	// Now is the clock; required.
	Now func() time.Time
	// Caller is the client process, mostly Client(). Zero: it is unknown, and so is what it was served before.
	Caller Caller
	// Terminal shows notices; required.
	Terminal Terminal
	// Margin is how long before its expiry a credential is no longer served; clients get an expiry that is earlier by it;
	// at most half of the credential's life. 0: DefaultMargin; negative: no margin.
	Margin time.Duration
	// CostsPerson reports whether a new credential takes a person, unless there is a state. A repeated request gets the stored credential
	// once more then, before it counts as refused: some clients request twice without a refusal.
	CostsPerson bool
	// NewerThan is when a credential is replaced early: a stored one that was got before it is served only if no new one can be got.
	// Zero: any is served.
	NewerThan time.Time
	// Alternatives is how many other credentials the source has at hand: so many refusals in a row are each followed by the next one
	// without a pause.
	Alternatives int
	// LockTimeout is how long to wait for another process. 0: DefaultLockTimeout.
	LockTimeout time.Duration
	// Patience is the time before a notice of waiting. 0: DefaultPatience; negative: at once.
	Patience time.Duration
}

// Serve returns a credential for one request: the stored one if that is fresh, else a new one of the source. Its Expires is for
// the client. The error is of the class ErrNeedsPerson, ErrRefused or ErrRemembered, or cache.ErrUnsafe if the
// folder is not this user's alone, or an outage. A folder that cannot be used for another reason gives a notice, and is not used.
func (p *Provider) Serve(ctx context.Context, source Source, info ExecInfo) (Credential, error) {
	return p.serve(ctx, source, info, false)
}

// Renew is Serve for a user who requests a new credential, to be stored: it ignores a fresh one and a remembered failure. Where it
// cannot be stored the error is ErrNotKept, if possible before the user is prompted.
func (p *Provider) Renew(ctx context.Context, source Source, info ExecInfo) (Credential, error) {
	return p.serve(ctx, source, info, true)
}

// Kept returns the stored credential of a key, if Serve would return it as well without the source. It gives no errors or
// notices: Serve does.
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

// orDefault is a duration whose zero is the default, and 0 if it is negative.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
