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
	// Credential is zero before the first one.
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
	Count int `json:"count"`
	// At is when the last one was got.
	At time.Time `json:"at"`
}

// Failure is an attempt that failed.
type Failure struct {
	At time.Time `json:"at"`
	// Class is what a client of the error can do about it.
	Class Class `json:"class"`
	// Message is the text of the error, without secrets.
	Message string `json:"message"`
	// Interactive reports whether the user could have been prompted.
	Interactive bool `json:"interactive,omitempty"`
	// Callers are the latest known clients that got the failure.
	Callers []Caller `json:"callers,omitempty"`
	// Count is how many attempts in a row have failed, this one included.
	Count int `json:"count"`
}

// Class is a class of failure, as it is written on disk.
type Class string

// The classes: see ErrNeedsPerson and ErrRefused.
const (
	NeedsPerson Class = "needs-person"
	Refused     Class = "refused"
	Outage      Class = "outage"
)

// Caller is the client process: the parent of this one. The zero value is an unknown one.
type Caller struct {
	PID int `json:"pid"`
	// Started distinguishes processes with the same number; it is empty where the system has no start times.
	Started string `json:"started,omitempty"`
	// Program is the program of the process: after an exec it has lost its credential. It is empty where the system
	// has no such information, or where a process cannot exec. It is not kept.
	Program string `json:"-"`
}

// has reports whether the entry has a credential, perhaps an expired one.
func (e *Entry) has() bool {
	return e != nil && (!e.Credential.Token.IsZero() || len(e.Credential.CertificatePEM) > 0 || !e.Credential.KeyPEM.IsZero())
}

// valid reports whether the entry has a credential with an expiry that has not passed.
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
