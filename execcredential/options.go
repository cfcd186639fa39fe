package execcredential

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"
)

// Options of a Pool. The zero value is good for most programs.
type Options struct {
	// Timeout ends a run of a program that is not interactive. Zero means 60 seconds. Only NoTimeout may be negative.
	Timeout time.Duration
	// InteractiveTimeout ends a run of an interactive program, at which a person may be looking for a password. Zero means 10 minutes. Only
	// NoTimeout may be negative.
	InteractiveTimeout time.Duration
	// RefreshAhead runs a program again in the background when a credential is used that expires so soon, or when half of its life is
	// over if that is later. Zero means never: a program runs when its credential has expired, as with client-go.
	RefreshAhead time.Duration
	// Policy limits which programs may run.
	Policy Policy
	// PlainHTTPHosts are the servers that get credentials without TLS: hosts as they are in URLs, each with its port unless that is 80,
	// like "127.0.0.1:8001". Every host on the way to such a server, a proxy included, reads the token and can use it, so it is for
	// proxies on this machine, and for tests. For all other servers without TLS no program runs, and their requests end with a
	// *PlainHTTPError. A client certificate can't be shown without TLS: a credential that has no token is a
	// *PlainHTTPError too.
	PlainHTTPHosts []string
	// Stdin is what interactive programs read. Nil means os.Stdin.
	Stdin *os.File
	// Stderr gets what programs write to standard error. Nil means os.Stderr; io.Discard means that it is only in errors. It must be
	// safe for concurrent use.
	Stderr io.Writer
	// MaxSources is how many sources a Pool remembers, to share them between equal configs; the longest unused ones are forgotten,
	// and go on to work for those who hold them. Zero means 1024.
	MaxSources int
	// Logger gets a line for failures that no caller gets: of refreshing ahead, and after a server answered 401; and for output that has
	// expired already. Nil means none.
	Logger *slog.Logger
	// OnRun is called after every run, for metrics. It must not close the pool, which waits for it.
	OnRun func(Run)
	// Clock is the time. Nil means that of the system.
	Clock Clock
	// Rand returns numbers in [0, 1), for jitter. Nil means a random source.
	Rand func() float64
}

// Run is one run of a program, or of a Provider.
type Run struct {
	Config   Config // empty for a Provider
	Reason   Reason
	Duration time.Duration
	Expires  time.Time // of the credential that it gave; zero for none
	Err      error

	// Source is whose run it was.
	Source *Source
	// Certificate is the client certificate that the run gave, and Replaced the one before, if it was another; nil for none.
	Certificate, Replaced *x509.Certificate
}

// Reason is why a program was run.
type Reason string

const (
	// Needed means that there was no credential, or that it had expired.
	Needed Reason = "Needed"
	// Ahead means that the credential would have expired soon.
	Ahead Reason = "Ahead"
	// Rejected means that a server answered 401.
	Rejected Reason = "Rejected"
	// Requested means that Source.Refresh was called.
	Requested Reason = "Requested"
)

// NoTimeout is a Timeout or an InteractiveTimeout for runs that end by themselves only. Other negative values are errors, as they come
// from a deadline that was calculated and has passed.
const NoTimeout time.Duration = -1

func checkTimeouts(timeout, interactive time.Duration) error {
	for _, t := range []struct {
		field string
		value time.Duration
	}{{"timeout", timeout}, {"interactiveTimeout", interactive}} {
		if t.value < 0 && t.value != NoTimeout {
			return &ConfigError{Field: t.field, Reason: fmt.Sprintf("is %s, which is negative; use NoTimeout for no timeout", t.value)}
		}
	}
	return nil
}

func (o Options) validate() error {
	if err := checkTimeouts(o.Timeout, o.InteractiveTimeout); err != nil {
		return err
	}
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if o.RefreshAhead < 0 {
		return &ConfigError{Field: "refreshAhead", Reason: fmt.Sprintf("is %s, which is negative", o.RefreshAhead)}
	}
	if o.MaxSources < 0 {
		return &ConfigError{Field: "maxSources", Reason: fmt.Sprintf("is %d, which is negative", o.MaxSources)}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Policy = o.Policy.clone()
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxSources = cmp.Or(o.MaxSources, 1024)
	return o
}
