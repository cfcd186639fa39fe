package externalsigner

import (
	"errors"
	"fmt"
	"time"
)

// Reason is the kind of fault of a signer or its answer. The set is fixed, so that it can be the label of a metric.
type Reason string

// The reasons of errors.
const (
	ReasonUnreachable Reason = "unreachable" // no answer on the socket
	ReasonTimeout     Reason = "timeout"     // the signer took the call, and did not answer in time
	ReasonCanceled    Reason = "canceled"    // the caller has gone
	ReasonRefused     Reason = "refused"     // the signer answered with an error
	ReasonStore       Reason = "store"       // the ledger could not be read, was not valid, or could not be kept

	ReasonNoKeys         Reason = "no_keys"          // no keys are announced, or all are excluded
	ReasonTooManyKeys    Reason = "too_many_keys"    // more keys than relying parties or the ledger take
	ReasonKeyID          Reason = "key_id"           // a kid that is empty, too long or not printable
	ReasonDuplicateKeyID Reason = "duplicate_key_id" // two keys under one kid
	ReasonKey            Reason = "key"              // a key that can not be read, or that relying parties would refuse
	ReasonKeyChanged     Reason = "key_changed"      // a kid that was another key's
	ReasonRefreshHint    Reason = "refresh_hint"     // a refresh hint that is not positive
	ReasonDataTimestamp  Reason = "data_timestamp"   // a time of the keys that is missing, or in the future
	ReasonMetadata       Reason = "metadata"         // a longest lifetime that is too short

	ReasonHeader              Reason = "header"                 // not an encoded object of alg, kid and typ alone
	ReasonType                Reason = "type"                   // typ is not JWT
	ReasonUnknownAlgorithm    Reason = "unknown_algorithm"      // alg is unknown to Credence
	ReasonAlgorithmOfOtherKey Reason = "algorithm_of_other_key" // alg is not that of the key
	ReasonAlgorithmRefused    Reason = "algorithm_refused"      // the token's audience does not accept alg
	ReasonUnknownKey          Reason = "unknown_key"            // the kid was not announced
	ReasonExcludedKey         Reason = "excluded_key"           // the kid is excluded from publication
	ReasonSignature           Reason = "signature"              // empty, or not an encoded signature of the algorithm
	ReasonWrongSignature      Reason = "wrong_signature"        // a signature of other claims, or by another key

	ReasonTooYoung Reason = "too_young" // the key was not published long enough
	ReasonGates    Reason = "gates"     // a gate has not confirmed the key
	ReasonNotReady Reason = "not_ready" // no announcement was taken yet
)

// Reasons lists every Reason.
func Reasons() []Reason {
	return []Reason{
		ReasonUnreachable, ReasonTimeout, ReasonCanceled, ReasonRefused, ReasonStore,
		ReasonNoKeys, ReasonTooManyKeys, ReasonKeyID, ReasonDuplicateKeyID, ReasonKey, ReasonKeyChanged,
		ReasonRefreshHint, ReasonDataTimestamp, ReasonMetadata,
		ReasonHeader, ReasonType, ReasonUnknownAlgorithm, ReasonAlgorithmOfOtherKey, ReasonAlgorithmRefused,
		ReasonUnknownKey, ReasonExcludedKey, ReasonSignature, ReasonWrongSignature,
		ReasonTooYoung, ReasonGates, ReasonNotReady,
	}
}

// Error is every error of this package that comes from a signer or a ledger. Its text never holds a signature or a token.
type Error struct {
	Reason Reason
	Detail string
	// ReadyAt is from when the same request can succeed, for ReasonTooYoung; else zero.
	ReadyAt time.Time
	// Cause is the wrapped error, or nil.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Detail + ": " + e.Cause.Error()
	}
	return e.Detail
}

// Unwrap gives errors.Is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ReasonOf returns the reason of an error of this package, and false for any other.
func ReasonOf(err error) (Reason, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason, true
	}
	return "", false
}

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
