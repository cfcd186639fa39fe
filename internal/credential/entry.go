package credential

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// Entry is what is kept of one key on disk.
type Entry struct {
	// Key is the key of the source that it is of.
	Key map[string]string
	// Credential is zero if none has been got yet.
	Credential Credential
	// State is the source's own: a refresh token, say. Secret.
	State json.RawMessage
	// Obtained is when the credential was got.
	Obtained time.Time
	// Refusals are, for each cluster, the credentials that were got because its server refused the one before. A cluster that a client
	// does not name is the empty one.
	Refusals map[string]Refusals
	// Failure is the last attempt to get a credential, if it failed.
	Failure *Failure
}

// Refusals are credentials in a row that were got because one server refused the one before.
type Refusals struct {
	Count int
	// At is when the last one was got.
	At time.Time
}

// Failure is an attempt that failed.
type Failure struct {
	At time.Time
	// Class is what a client of the error can do about it.
	Class Class
	// Message is the text of the error, without secrets.
	Message string
	// Interactive says whether a person could have been asked.
	Interactive bool
	// Callers are the clients that were told, as far as they are known, and the latest only.
	Callers []Caller
	// Count is how many attempts in a row have failed, this one included.
	Count int
}

// Class is a class of failure, as it is written on disk.
type Class string

// The classes: see ErrNeedsPerson and ErrRefused.
const (
	NeedsPerson Class = "needs-person"
	Refused     Class = "refused"
	Outage      Class = "outage"
)

// Caller is the process that asks: the parent of this one. The zero value is nobody that is known.
type Caller struct {
	PID int
	// Started tells processes apart that had the same number one after the other; it is empty where the system does not say.
	Started string
	// Program tells what a process runs: one that has become another program has forgotten what it was given. Empty where the
	// system does not say, or where a process cannot become another program.
	Program string
}

// has says whether there is a credential, perhaps an expired one.
func (e *Entry) has() bool {
	return e != nil && (!e.Credential.Token.IsZero() || len(e.Credential.CertificatePEM) > 0 || !e.Credential.KeyPEM.IsZero())
}

// valid says whether there is a credential that the server should take: it says when it expires, and has not.
func (e *Entry) valid(now time.Time) bool { return e.has() && now.Before(e.Credential.Expires) }

// Format implements fmt.Formatter: no verb shows what is secret.
func (e Entry) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%v obtained %s, expires %s, [redacted]}", e.Key,
		e.Obtained.UTC().Format(time.RFC3339), e.Credential.Expires.UTC().Format(time.RFC3339))
}

// LogValue implements slog.LogValuer.
func (e Entry) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(e)) }

// MarshalText implements encoding.TextMarshaler, so that JSON shows nothing secret either.
func (e Entry) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(e)), nil }
