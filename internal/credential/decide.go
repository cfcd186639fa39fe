package credential

import (
	"slices"
	"time"
)

// DefaultMargin is how long before its expiry a credential is no longer served to a new client.
const DefaultMargin = 30 * time.Second

// clockTolerance is how far a clock is set back without meaning anything by it; less than the margin.
const clockTolerance = 10 * time.Second

const (
	// A credential that was got because the server refused the one before is replaced for the same reason only after a while,
	// which grows: a server that refuses everything is not helped by new credentials, and each may cost a refresh token.
	firstRefusalPause, longestRefusalPause = 10 * time.Second, 30 * time.Minute
	// A client that was told of an outage is told again without another attempt for a while, which grows. kubectl runs a
	// provider that fails six times in a row.
	firstOutagePause, longestOutagePause = 5 * time.Second, time.Minute
	// The same where somebody has to do something first.
	firstFailurePause, longestFailurePause = 30 * time.Second, 10 * time.Minute
	// Attempts in a row, of whichever client, after which nobody is asked again for a while: behind them is no person, but a
	// loop that opens a page each time.
	unattendedFailures     = 4
	longestUnattendedPause = time.Hour
)

// verdict is what is done about one ask.
type verdict int

const (
	serve      verdict = iota // what is kept
	serveAgain                // what is kept, though the server seems to refuse it: it refused the one before, too, a moment ago
	repeat                    // the error that is remembered
	obtain                    // a new credential
	replace                   // a new credential, since the server refused the one that is kept
)

// situation is all that is known when one client asks.
type situation struct {
	entry  *Entry
	now    time.Time
	margin time.Duration
	// seen says that this very client was served the kept credential before.
	seen bool
	// interactive says whether a person may be asked.
	interactive bool
	// caller is the client; zero if it is not known.
	caller Caller
	// cluster is the one that the client talks to; empty if it does not say.
	cluster string
}

// decide says what is done, as far as it follows from what is kept.
func decide(s situation) verdict {
	fresh := s.fresh()
	if fresh && !s.seen {
		return serve
	}
	renewsEarly := fresh && s.renewsEarly()
	if fresh && !renewsEarly && s.now.Before(s.refusals().until()) {
		return serveAgain
	}
	if s.remembered() {
		// In an outage nothing better is to be had, within the margin too, and it only seems that the server refuses it.
		if s.usable() && s.entry.Failure.Class != Refused {
			return serve
		}
		return repeat
	}
	if fresh && !renewsEarly {
		return replace
	}
	return obtain
}

// renewsEarly says whether a client that has the credential asks at the end of the time that it was told: some renew theirs before they must,
// and do not mean that it was refused. That is the last tenth of the credential's life, or as long as the margin if that is longer, but at
// most half of the time that the client was told.
func (s situation) renewsEarly() bool {
	e, margin := s.entry, effectiveMargin(s.entry, s.margin)
	life := e.Credential.Expires.Sub(e.Obtained)
	served := life - margin
	return s.now.After(e.Obtained.Add(served - min(max(life/10, margin), served/2)))
}

// refusals are those by the server that the client talks to.
func (s situation) refusals() Refusals { return s.entry.Refusals[s.cluster] }

// fresh says whether what is kept can be served to a new client. If it was got in the future the clock was set back: what
// its expiry means is not known then.
func (s situation) fresh() bool {
	return s.entry.valid(s.now.Add(effectiveMargin(s.entry, s.margin))) && !s.inTheFuture()
}

// usable says whether what is kept is valid at all.
func (s situation) usable() bool { return s.entry.valid(s.now) && !s.inTheFuture() }

// inTheFuture says whether what is kept was got later than now, by more than a clock is corrected by: a new one may cost somebody a
// login, or an approval.
func (s situation) inTheFuture() bool { return s.entry.Obtained.After(s.now.Add(clockTolerance)) }

// effectiveMargin is the margin, but at most half of what the credential had to live, so that short ones can be shared too.
func effectiveMargin(e *Entry, margin time.Duration) time.Duration {
	if !e.has() {
		return 0
	}
	return max(0, min(margin, e.Credential.Expires.Sub(e.Obtained)/2))
}

// remembered says whether an attempt now would be one more of those that just failed.
func (s situation) remembered() bool {
	if s.entry == nil || s.entry.Failure == nil {
		return false
	}
	f := s.entry.Failure
	if f.At.After(s.now.Add(clockTolerance)) || !f.concerns(s.interactive) {
		return false
	}
	informed := s.caller.known() && slices.ContainsFunc(f.Callers, s.caller.same)
	return informed && s.now.Before(f.At.Add(f.pause())) || s.now.Before(f.At.Add(f.unattendedPause()))
}

// concerns says whether the failure is one for a client that allows a person to be asked, or not: where no person could be
// asked, another client may have one.
func (f *Failure) concerns(interactive bool) bool {
	return f.Class != NeedsPerson || f.Interactive || !interactive
}

// pause is how long a client that was told is told again.
func (f *Failure) pause() time.Duration {
	if f.Class == Outage {
		return doubled(firstOutagePause, f.Count-1, longestOutagePause)
	}
	return doubled(firstFailurePause, f.Count-1, longestFailurePause)
}

// unattendedPause is how long any client is told again.
func (f *Failure) unattendedPause() time.Duration {
	if !f.Interactive || f.Class == Outage || f.Count < unattendedFailures {
		return 0
	}
	return doubled(firstFailurePause, f.Count-unattendedFailures, longestUnattendedPause)
}

// doubled is a time, doubled so many times, but no longer than the longest.
func doubled(first time.Duration, times int, longest time.Duration) time.Duration {
	for ; times > 0 && first < longest; times-- {
		first *= 2
	}
	return min(first, longest)
}
