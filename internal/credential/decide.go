package credential

import (
	"slices"
	"time"
)

// DefaultMargin is how long before its expiry a credential is no longer served to a new client.
const DefaultMargin = 30 * time.Second

// clockTolerance is how far an ordinary clock correction sets a clock back; less than the margin.
const clockTolerance = 10 * time.Second

const (
	// A credential that was got because the server refused the one before is replaced for the same reason only after a while,
	// which grows: a server that refuses everything is not helped by new credentials, and each may cost a refresh token.
	firstRefusalPause, longestRefusalPause = 10 * time.Second, 30 * time.Minute
	// A client that got an outage gets the same error again without another attempt for a while, which grows. kubectl runs a
	// provider that fails six times in a row.
	firstOutagePause, longestOutagePause = 5 * time.Second, time.Minute
	// The same for a failure that needs a person.
	firstFailurePause, longestFailurePause = 30 * time.Second, 10 * time.Minute
	// After so many attempts in a row, of any client, the user is not prompted for a while: the client is an unattended loop
	// that opens a page each time.
	unattendedFailures     = 4
	longestUnattendedPause = time.Hour
)

// verdict is the handling of one request.
type verdict int

const (
	serve      verdict = iota // the stored credential
	serveAgain                // the stored credential, though the server seems to refuse it: it refused the one before, too, a moment ago
	repeat                    // the remembered error
	obtain                    // a new credential
	replace                   // a new credential, since the server refused the stored one
)

// situation is the input of a decision about one client's request.
type situation struct {
	entry  *Entry
	now    time.Time
	margin time.Duration
	// newerThan is Provider.NewerThan.
	newerThan time.Time
	// alternatives is Provider.Alternatives.
	alternatives int
	// seen reports whether this very client was served the stored credential before.
	seen bool
	// interactive reports whether the user may be prompted.
	interactive bool
	// caller is the client; zero if it is not known.
	caller Caller
	// cluster is the client's cluster; empty if the client does not name it.
	cluster string
}

// decide returns the verdict, as far as it follows from the stored entry.
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

// renewsEarly reports whether a client that has the credential requests at the end of the time that it was served: some clients renew
// early, without having been refused. That is the last tenth of the credential's life, or the margin if that is longer, but at
// most half of the served time.
func (s situation) renewsEarly() bool {
	e, margin := s.entry, effectiveMargin(s.entry, s.margin)
	life := e.Credential.Expires.Sub(e.Obtained)
	served := life - margin
	return s.now.After(e.Obtained.Add(served - min(max(life/10, margin), served/2)))
}

// refusals are those by the server of the client, without those that alternatives are there for.
func (s situation) refusals() Refusals {
	r := s.entry.Refusals[s.cluster]
	r.Count = max(0, r.Count-s.alternatives)
	return r
}

// fresh reports whether the stored credential can be served to a new client. If it was obtained in the future, the clock was set
// back, and its expiry cannot be judged.
func (s situation) fresh() bool {
	return s.entry.valid(s.now.Add(effectiveMargin(s.entry, s.margin))) && !s.inTheFuture() && !s.entry.Obtained.Before(s.newerThan)
}

// usable reports whether the stored credential is valid at all.
func (s situation) usable() bool { return s.entry.valid(s.now) && !s.inTheFuture() }

// inTheFuture reports whether the stored credential was obtained later than now, by more than clockTolerance: replacing it may cost
// a login or an approval.
func (s situation) inTheFuture() bool { return s.entry.Obtained.After(s.now.Add(clockTolerance)) }

// effectiveMargin is the margin, but at most half of what the credential had to live, so that short ones can be shared too.
func effectiveMargin(e *Entry, margin time.Duration) time.Duration {
	if !e.has() {
		return 0
	}
	return max(0, min(margin, e.Credential.Expires.Sub(e.Obtained)/2))
}

// remembered reports whether an attempt now would repeat those that just failed.
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

// concerns reports whether the failure applies to a client, interactive or not: where the user could not be prompted, another
// client may be able to.
func (f *Failure) concerns(interactive bool) bool {
	return f.Class != NeedsPerson || f.Interactive || !interactive
}

// pause is how long a client that got the failure gets it again.
func (f *Failure) pause() time.Duration {
	if f.Class == Outage {
		return doubled(firstOutagePause, f.Count-1, longestOutagePause)
	}
	return doubled(firstFailurePause, f.Count-1, longestFailurePause)
}

// unattendedPause is how long any client gets the failure again.
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
