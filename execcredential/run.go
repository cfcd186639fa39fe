package execcredential

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"
)

// start begins a run, and makes it the one that all wait for. It is called with s.mu held.
func (s *Source) start(reason Reason) *flight {
	f := s.running
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.running = f
	}
	f.reason, f.started = reason, true
	s.launch(f)
	return f
}

// delay makes a run that begins later, for those who can't be served before. It is called with s.mu held.
func (s *Source) delay(reason Reason, d time.Duration) *flight {
	f := &flight{reason: reason, done: make(chan struct{})}
	s.running = f
	f.stop = s.pool.options.Clock.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running == f && !f.started {
			f.started = true
			s.launch(f)
		}
	})
	return f
}

func (s *Source) launch(f *flight) {
	if !s.pool.enter() {
		f.err = ErrClosed
		s.running = nil
		close(f.done)
		return
	}
	go func() {
		defer s.pool.leave()
		s.fly(f)
	}()
}

func (s *Source) fly(f *flight) {
	clock := s.pool.options.Clock
	began := clock.Now()
	credential, err := s.call(s.pool.life)
	if err == nil && credential.empty() {
		err = &OutputError{Problem: NoCredential, Detail: "the provider returned none"}
	}
	if s.pool.closed.Load() {
		credential, err = nil, ErrClosed
	}
	f.credential, f.err = credential, err
	var replaced *x509.Certificate

	s.mu.Lock()
	now := clock.Now()
	s.status.Runs++
	s.status.Err = err
	if f.reason == Rejected {
		s.rejected.ran(f.server, f.refused, now)
	}
	stale := err == nil && credential.expired(now) && !s.warned
	if err != nil {
		s.status.Failures++
		s.pause.failed(now, s.pool.options.Rand())
	} else {
		s.pause.succeeded(now)
		s.warned = s.warned || stale
		replaced = s.last
		s.last = credential.leaf()
		s.current.Store(&held{Credential: credential, refreshAt: s.refreshAt(credential, now)})
		if s.pool.closed.Load() {
			s.current.Store(nil) // Close looked before
		}
	}
	s.running = nil
	s.mu.Unlock()
	close(f.done)

	report := Run{Config: *s.config, Reason: f.reason, Duration: now.Sub(began), Err: err, Source: s}
	if credential != nil {
		report.Expires, report.Certificate = credential.expires, credential.leaf()
		if replaced != nil && !replaced.Equal(report.Certificate) {
			report.Replaced = replaced
		}
	}
	s.report(report, stale)
}

// call turns a panic of a provider into a failure: the goroutine is not that of a caller who could recover.
func (s *Source) call(ctx context.Context) (credential *Credential, err error) {
	defer func() {
		if p := recover(); p != nil {
			credential, err = nil, fmt.Errorf("exec credential: the provider panicked: %v", p)
		}
	}()
	return (*s.provider).Credential(ctx)
}

func (s *Source) report(run Run, stale bool) {
	log := s.pool.options.Logger
	switch {
	case run.Err != nil && (run.Reason == Ahead || run.Reason == Rejected):
		log.Warn("replacing a credential", "reason", run.Reason, "command", s.config.Command, "err", run.Err)
	case stale:
		log.Warn("a program writes credentials that have expired already; it runs again and again, up to once a second", "command", s.config.Command, "expirationTimestamp", run.Expires)
	}
	if s.pool.options.OnRun != nil {
		s.pool.options.OnRun(run)
	}
}

// refreshAt is when credential is replaced in the background: Options.RefreshAhead before it expires, a tenth of that more or less, but
// not in the first half of its life. It is zero for never.
func (s *Source) refreshAt(c *Credential, now time.Time) time.Time {
	ahead := s.pool.options.RefreshAhead
	if ahead == 0 || c.expires.IsZero() {
		return time.Time{}
	}
	ahead += time.Duration(float64(ahead) * (s.pool.options.Rand() - 0.5) / 5)
	return c.expires.Add(-min(ahead, c.expires.Sub(now)/2))
}
