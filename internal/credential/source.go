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
	// ErrNeedsPerson: a person must act, and the client does not allow a prompt, or the user did not answer.
	ErrNeedsPerson = errors.New("a person is needed")
	// ErrRefused: the other side refused (invalid_grant, access_denied). Trying the same again is of no use.
	ErrRefused = errors.New("refused")
)

// Source gets credentials of one kind.
type Source interface {
	// Key is all that decides which credential this is, as names and values without secrets: users see it in the list of
	// stored credentials. The name of the file is the SHA-256 of its canonical JSON. By convention "source" names the kind. With a nil
	// key nothing of this source is stored on disk: Obtain is called each time. Key is called on each run, and makes no
	// requests over a network.
	Key() map[string]string
	// Obtain gets a new credential. It is called by one process at a time for one key, unless the folder cannot be locked;
	// in that case the request carries no state.
	//
	// The second value is the state to store for the next time, such as a refresh token. Without an error it
	// replaces the stored one, also if it is nil. With an error, nil keeps the stored one, and anything else replaces it:
	// return the JSON null to delete a state that will never be of use again.
	//
	// An error must not contain secrets: it is shown, and stored for a moment.
	Obtain(ctx context.Context, request Request) (Credential, json.RawMessage, error)
}

// Request is the input of a Source.
type Request struct {
	ExecInfo ExecInfo
	// Previous is nil, or the stored entry, whose credential may have expired.
	Previous *Entry
	// Refused reports whether the server did not accept the credential of Previous, though it has not expired.
	Refused bool
	// Terminal is never nil. Whether the user may be prompted is in ExecInfo.Interactive.
	Terminal Terminal
	// Keep writes a state to disk at once, before Obtain returns: call it as soon as the other side has replaced a single-use
	// state, and before anything else that could fail. It is never nil. After an error the state could
	// not be written, and the one before is no longer stored either; the credential may be used all the same.
	Keep func(state json.RawMessage) error
}

// State returns the stored state, or nil.
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
