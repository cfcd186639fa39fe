package credential

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrNotKept: a person wanted a credential that is kept, and it cannot be.
var ErrNotKept = errors.New("it cannot be kept")

// Classes of failure, for errors.Is. Every other error of a Source is an outage: it may be tried again, and nothing that is
// kept is thrown away for it.
var (
	// ErrNeedsPerson: a person must do something, and the client does not allow to ask them, or there is nobody to ask.
	ErrNeedsPerson = errors.New("a person is needed")
	// ErrRefused: the other side said no (invalid_grant, access_denied). Trying the same again is of no use.
	ErrRefused = errors.New("refused")
)

// Source gets credentials of one kind.
type Source interface {
	// Key is all that decides which credential this is, as names and values without secrets: people see it in the list of
	// what is kept. The name of the file is the SHA-256 of its canonical JSON. By convention "source" names the kind. A nil
	// key says that nothing of this source is kept on disk: Obtain is called each time. It is asked for on each run, and calls
	// nobody over a network.
	Key() map[string]string
	// Obtain gets a new credential. It is called by one process at a time for one key, unless the folder cannot be locked;
	// in that case the request carries no state.
	//
	// The second value is the state that is to be kept for the next time, such as a refresh token. Without an error it
	// replaces what was kept, also if it is nil. With an error, nil leaves what was kept, and anything else replaces it:
	// return the JSON null to have a state forgotten that will never be of use again.
	//
	// An error says nothing secret: it is shown, and kept for a moment.
	Obtain(ctx context.Context, request Request) (Credential, json.RawMessage, error)
}

// Request is what a Source is asked.
type Request struct {
	ExecInfo ExecInfo
	// Previous is nil, or what was kept; its credential is perhaps expired.
	Previous *Entry
	// Refused says that the server did not take the credential of Previous, though it has not expired.
	Refused bool
	// Terminal is never nil. Whether a person may be asked is in Ask.Interactive.
	Terminal Terminal
	// Keep writes a state to disk at once, before Obtain returns: call it as soon as the other side has replaced a state
	// that can be used only once, and before anything else that could fail. It is never nil. An error says that the state
	// could not be written, and that what was kept before is no longer kept either; the credential may be used all the same.
	Keep func(state json.RawMessage) error
}

// State returns the state of what was kept, or nil.
func (r Request) State() json.RawMessage {
	if r.Previous == nil {
		return nil
	}
	return r.Previous.State
}

// Terminal is the way to the person in front of the client.
type Terminal interface {
	// Notice shows a line of text on standard error, which is never part of the answer.
	Notice(format string, args ...any)
	// OpenURL shows a page in the person's browser. It does not wait for the browser.
	OpenURL(url string) error
}
