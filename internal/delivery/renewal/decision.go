package renewal

import (
	"slices"
	"time"
)

// Token has the claims of a stored token.
type Token struct {
	KeyID            string
	Subject          string
	Audiences        []string
	IssuedAt, Expiry time.Time
}

// State is what a Secret holds.
type State struct {
	// Token is nil if it is missing or cannot be read.
	Token *Token
	// RenewAt is as it stands in the annotation. Digest is that of the inputs that the token was written for; empty: it was not written.
	RenewAt, Digest string
	// Requested reports whether the Secret, or the resource that refers to the identity, requests a new token.
	Requested bool
}

// Want is what the token should be.
type Want struct {
	Subject   string
	Audiences []string
	Digest    string
	// Revoked are the keys that must not be trusted any more.
	Revoked func(keyID string) bool
}

// Reason is why a token is renewed: a word for logs, Events and metrics.
type Reason string

// The reasons, in the order in which they are looked at.
const (
	Missing       Reason = "missing"         // the token is missing or cannot be read
	Expired       Reason = "expired"         // its time is over
	FromTheFuture Reason = "from_the_future" // a clock has jumped
	Revoked       Reason = "key_revoked"     // its key is not to be trusted
	IdentityNew   Reason = "identity_new"    // it is of another identity, or of one that was created anew
	InputsChanged Reason = "inputs_changed"  // audiences, providerConfig or context are not those that it was made from, or another token was written
	Requested     Reason = "asked"           // a new one is requested
	NoSchedule    Reason = "no_schedule"     // the time of its renewal can't be read, or is outside its life
	Due           Reason = "due"             // its time has come
)

// Reasons returns all reasons, for metrics.
func Reasons() []Reason {
	return []Reason{Missing, Expired, FromTheFuture, Revoked, IdentityNew, InputsChanged, Requested, NoSchedule, Due}
}

// maxClockSkew is how far the clocks of issuer and agent may be apart before a token counts as one from the future.
const maxClockSkew = time.Minute

// Ahead returns how far the issuer's clock is ahead of this machine's, by a token that was issued just now: 0 if that is tolerated.
func Ahead(issuedAt, now time.Time) time.Duration {
	if ahead := issuedAt.Sub(now); ahead.Abs() > maxClockSkew {
		return ahead
	}
	return 0
}

// Decision has the reason to renew now, or the time of the renewal.
type Decision struct {
	// Reason is why the token is renewed now; empty if it is not.
	Reason Reason
	// At is when it is due, if it is not now.
	At time.Time
}

// Renew reports whether the token is renewed now.
func (d Decision) Renew() bool { return d.Reason != "" }

// Decide decides whether a token is renewed now. It is if any state is invalid: a token too many does no harm.
func Decide(state State, want Want, now time.Time) Decision {
	token := state.Token
	if token == nil || token.IssuedAt.IsZero() || !token.Expiry.After(token.IssuedAt) {
		return Decision{Reason: Missing}
	}
	if !now.Before(token.Expiry) {
		return Decision{Reason: Expired}
	}
	if token.IssuedAt.After(now.Add(maxClockSkew)) {
		return Decision{Reason: FromTheFuture}
	}
	if want.Revoked != nil && want.Revoked(token.KeyID) {
		return Decision{Reason: Revoked}
	}
	if token.Subject != want.Subject {
		return Decision{Reason: IdentityNew}
	}
	if state.Digest != want.Digest || !slices.Equal(token.Audiences, want.Audiences) {
		return Decision{Reason: InputsChanged}
	}
	if state.Requested {
		return Decision{Reason: Requested}
	}
	at, err := time.Parse(time.RFC3339, state.RenewAt)
	if err != nil || at.Before(token.IssuedAt) || at.After(token.Expiry) {
		return Decision{Reason: NoSchedule}
	}
	if !now.Before(at) {
		return Decision{Reason: Due}
	}
	return Decision{At: at}
}
