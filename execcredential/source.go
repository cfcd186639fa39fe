package execcredential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Provider makes a credential. Pool.Source makes one of a program; Pool.SourceOf takes one that is Go code, such as one whose key is
// in a TPM. It is called by one goroutine at a time. The context ends when the pool is closed,
// and closing the pool waits until the call has ended.
type Provider interface {
	Credential(ctx context.Context) (*Credential, error)
}

// ProviderFunc is a function as Provider.
type ProviderFunc func(ctx context.Context) (*Credential, error)

// Credential calls f, and returns a *ConfigError if that is nil.
func (f ProviderFunc) Credential(ctx context.Context) (*Credential, error) {
	if f == nil {
		return nil, &ConfigError{Field: "provider", Reason: "is nil"}
	}
	return f(ctx)
}

// Source keeps the credential of one program up to date, for all who use it. It has no goroutine while no program runs. All methods
// are safe for concurrent use. One that no Pool has made gives a *ConfigError.
type Source struct {
	pool     *Pool
	provider *Provider // a pointer, as config, so that no verb of fmt finds what it points to
	config   *Config   // empty for a Provider

	current atomic.Pointer[held]
	waiting atomic.Int64

	mu       sync.Mutex
	running  *flight
	pause    pause
	rejected rejections
	status   Status
	warned   bool              // that output had expired already
	last     *x509.Certificate // of the last credential
}

// held is a credential with the time from which it is replaced in the background.
type held struct {
	*Credential
	refreshAt time.Time   // zero for never
	signed    atomic.Bool // by a key in a device
}

// flight is one run, which all who need its outcome wait for.
type flight struct {
	reason     Reason
	server     string      // that refused a credential, for the reason Rejected
	refused    *Credential // by server
	started    bool
	stop       func() bool // of a run that has not begun
	done       chan struct{}
	credential *Credential
	err        error
}

// Status is what a Source has done so far.
type Status struct {
	Runs     int       // runs that have ended
	Failures int       // runs that failed, of those
	Err      error     // of the last run; nil after a success
	Next     time.Time // before which a program that failed is not run again; zero after a success
	Expires  time.Time // of the credential; zero without a credential, or if it never expires
	Waiting  int       // callers that wait for a run
}

// Get returns a credential that has not expired, and runs the program if it has to. The exception is output that has expired already
// when it is written, or soon after: it is returned until the pause after the run is over. The end of ctx ends the waiting, not the run.
func (s *Source) Get(ctx context.Context) (*Credential, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if h := s.current.Load(); h != nil {
		now := s.pool.options.Clock.Now()
		if !h.expired(now) {
			if !h.refreshAt.IsZero() && !now.Before(h.refreshAt) {
				s.refreshAhead(now)
			}
			return h.Credential, nil
		}
	}
	f, credential, err := s.need()
	if f == nil {
		return credential, err
	}
	return s.wait(ctx, f)
}

// check returns what is wrong with a Source that gives no credentials, whatever its program does.
func (s *Source) check() error {
	switch {
	case s == nil || s.pool == nil:
		return &ConfigError{Field: "source", Reason: "is nil or empty; Pool.Source and Pool.SourceOf of a Pool that NewPool has made return one"}
	case s.pool.closed.Load():
		return ErrClosed
	}
	return nil
}

// Refresh runs the program now, whatever its credential or its failures. If it is running already, that run counts.
func (s *Source) Refresh(ctx context.Context) (*Credential, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	f := s.running
	if f == nil || !f.started && f.stop() {
		f = s.start(Requested)
	}
	s.mu.Unlock()
	return s.wait(ctx, f)
}

// Rejected is for callers that a server answered with 401 to rejected. It returns another credential to try, or nil without one: because
// the program gives the same one again, or was run for that reason a short while ago. An error is a failed run. Which server it was is not
// known here; a Transport counts each on its own.
func (s *Source) Rejected(ctx context.Context, rejected *Credential) (*Credential, error) {
	return s.rejectedBy(ctx, "unknown", rejected)
}

func (s *Source) rejectedBy(ctx context.Context, server string, rejected *Credential) (*Credential, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	now := s.pool.options.Clock.Now()
	if h := s.usable(now); h != nil && !h.Equal(rejected) {
		s.mu.Unlock()
		return h.Credential, nil
	}
	f := s.running
	if f == nil {
		if s.pause.failing(now) || !s.rejected.allow(server, now) {
			s.mu.Unlock()
			return nil, nil
		}
		if s.pause.crowded(now) {
			f = s.delay(Rejected, s.pause.until.Sub(now))
		} else {
			f = s.start(Rejected)
		}
		f.server, f.refused = server, rejected
	}
	s.mu.Unlock()
	credential, err := s.wait(ctx, f)
	if err != nil || credential.Equal(rejected) {
		return nil, err
	}
	return credential, nil
}

// answered records the status that server answered to credential. One below 500 that is not 401 means that it took it.
func (s *Source) answered(server string, credential *Credential, status int) {
	if s.rejected.open.Load() == 0 || status == http.StatusUnauthorized || status >= http.StatusInternalServerError {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected.accepted(server, credential)
}

// forget drops all that the source knows of credentials.
func (s *Source) forget() {
	s.current.Store(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected.forget()
}

// signed records the result of a signature by the key of certificate, in a device. After a failure, the next caller that needs a
// credential runs the provider, which may find the key again. A key that signed before has lost its session, and is worth a run. One that
// never did may be broken for good, so that the runs for it are bounded as those for answers of 401. A credential that came in between
// stays.
func (s *Source) signed(certificate *tls.Certificate, err error) {
	h := s.current.Load()
	if h == nil || h.certificate != certificate {
		return
	}
	if err == nil {
		h.signed.Store(true)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pool.options.Clock.Now()
	if !h.signed.Load() && !s.rejected.allow("", now) {
		return
	}
	if s.current.CompareAndSwap(h, nil) && !h.signed.Load() {
		s.rejected.ran("", nil, now)
		if !s.pause.failing(now) {
			s.pause.until = now // this is the bound
		}
	}
}

// resigned returns another credential than unsigned, whose key did not sign; nil without one, or if the provider was run for that
// reason a short while ago. An error is a failed run.
func (s *Source) resigned(ctx context.Context, unsigned *Credential) (*Credential, error) {
	credential, err := s.Get(ctx)
	if err != nil || credential.certificate == unsigned.certificate {
		return nil, err
	}
	return credential, nil
}

// Status reports what s has done so far.
func (s *Source) Status() Status {
	if err := s.check(); err != nil && err != ErrClosed {
		return Status{Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Waiting = int(s.waiting.Load())
	if h := s.current.Load(); h != nil {
		status.Expires = h.expires
	}
	if status.Err != nil {
		status.Next = s.pause.until
	}
	return status
}

// need returns the run to wait for; or, without a run, the credential that came in between, or the failure that is remembered.
func (s *Source) need() (*flight, *Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pool.options.Clock.Now()
	if h := s.usable(now); h != nil {
		return nil, h.Credential, nil
	}
	switch {
	case s.running != nil:
		return s.running, nil, nil
	case s.pause.failing(now):
		return nil, nil, &BackoffError{Failures: s.pause.failures, Next: s.pause.until, Err: s.status.Err}
	case now.Before(s.pause.until):
		return s.delay(Needed, s.pause.until.Sub(now)), nil, nil
	default:
		return s.start(Needed), nil, nil
	}
}

// usable returns the credential that has not expired, or the one that the last run gave for as long as the pause after that run lasts, a
// second at most: no newer one is to be had. Else it returns nil. It is called with s.mu held.
func (s *Source) usable(now time.Time) *held {
	h := s.current.Load()
	if h != nil && h.expired(now) && (s.status.Err != nil || !now.Before(s.pause.until)) {
		return nil
	}
	return h
}

func (s *Source) refreshAhead(now time.Time) {
	if !s.mu.TryLock() {
		return // the goroutine that holds it is about to do the same, or a later request will
	}
	defer s.mu.Unlock()
	if h := s.current.Load(); s.running == nil && !now.Before(s.pause.until) && h != nil && !h.refreshAt.IsZero() && !now.Before(h.refreshAt) {
		s.start(Ahead)
	}
}

func (s *Source) wait(ctx context.Context, f *flight) (*Credential, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	select {
	case <-f.done:
		return f.credential, f.err
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-f.done:
		return f.credential, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %s: %w", s.name(), context.Cause(ctx))
	case <-s.pool.life.Done():
		return nil, ErrClosed
	}
}

var errNoContext = &ConfigError{Field: "context", Reason: "is nil; pass context.Background() to wait as long as the run takes"}

// Format names the program for every verb.
func (s *Source) Format(f fmt.State, _ rune) {
	if s == nil || s.config == nil {
		_, _ = io.WriteString(f, "a source of no credential")
		return
	}
	_, _ = io.WriteString(f, "a source of "+s.name())
}

func (s *Source) name() string {
	if s.config.Command == "" {
		return "a credential"
	}
	return fmt.Sprintf("the credential of program %q", s.config.Command)
}
