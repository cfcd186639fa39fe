package credential

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// maxMessage bounds, in characters, the stored message of an error.
	maxMessage = 1000
	// maxCallers bounds the remembered clients of a failure.
	maxCallers = 64
)

// ErrRemembered: the attempt failed a moment ago, and was not repeated. The error is also of the class of the first.
var ErrRemembered = errors.New("not tried again yet")

// rememberedError is the error of an attempt that failed before.
type rememberedError struct {
	failure Failure
	next    time.Time
}

func (e *rememberedError) Error() string {
	return fmt.Sprintf("%s (at %s; not tried again for this client before %s)", e.failure.Message,
		e.failure.At.Local().Format(time.TimeOnly), e.next.Local().Format(time.TimeOnly))
}

// Is reports whether the failure is of the class.
func (e *rememberedError) Is(target error) bool {
	switch target {
	case ErrRemembered:
		return true
	case ErrNeedsPerson:
		return e.failure.Class == NeedsPerson
	case ErrRefused:
		return e.failure.Class == Refused
	}
	return false
}

// remembered returns the failure as an error.
func (f Failure) remembered() error {
	return &rememberedError{failure: f, next: f.At.Add(max(f.pause(), f.unattendedPause()))}
}

// classify returns the class of a source's error.
func classify(err error) Class {
	switch {
	case errors.Is(err, ErrNeedsPerson):
		return NeedsPerson
	case errors.Is(err, ErrRefused):
		return Refused
	}
	return Outage
}

// failed returns the failure that is kept after one more attempt.
func failed(previous *Failure, err error, info ExecInfo, caller Caller, now time.Time) *Failure {
	next := &Failure{At: now, Class: classify(err), Message: Plain(err.Error(), maxMessage), Interactive: info.Interactive, Count: 1}
	// Failures long ago are not of this row, nor are those of a clock that was set back.
	if previous != nil && !previous.At.After(now.Add(clockTolerance)) && now.Before(previous.At.Add(2*longestUnattendedPause)) {
		next.Count, next.Callers = previous.Count+1, previous.Callers
	}
	next.addCaller(caller)
	return next
}

// addCaller records that a client got the failure.
func (f *Failure) addCaller(caller Caller) {
	if !caller.known() || slices.ContainsFunc(f.Callers, caller.same) {
		return
	}
	f.Callers = append(slices.Clone(f.Callers), Caller{PID: caller.PID, Started: caller.Started})
	if len(f.Callers) > maxCallers {
		f.Callers = f.Callers[len(f.Callers)-maxCallers:]
	}
}
