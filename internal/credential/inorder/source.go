package inorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

const (
	// refusedFor is how long a source whose credential a server refused comes after all others.
	refusedFor = 24 * time.Hour
	// unknownLife stands for the life of a credential whose expiry is unknown: only one with an expiry is stored, and with it which
	// source it is of.
	unknownLife = 10 * time.Minute
)

// errRefusedBefore: a source has no other credential than the one that the server refused.
var errRefusedBefore = fmt.Errorf("%w: the server refused its credential, and it has no other", credential.ErrRefused)

// Part is one of the sources.
type Part struct {
	credential.Source
	// Name is shown, and ID has all that decides which source it is, without secrets. Login are the words of a command line for a person.
	Name, ID string
	Login    []string
	// Provider has the settings of its own provider, but for Terminal and NewerThan.
	Provider credential.Provider
}

// Source tries its parts in their order.
type Source struct {
	Parts []Part
	// Server is the client's; empty if the client does not name it. A credential that one server refuses may be good for another.
	Server string
	// Now is the clock; required.
	Now func() time.Time
}

// Key implements credential.Source.
func (s *Source) Key() map[string]string {
	key := map[string]string{"source": "in-order", "server": s.Server}
	for i, part := range s.Parts {
		key[strconv.Itoa(i+1)] = part.ID
	}
	return key
}

// state is stored between runs.
type state struct {
	// Current is the ID of the source whose credential was given last.
	Current string `json:"current,omitempty"`
	// Refused are the credentials that a server refused last, by the IDs of their sources.
	Refused map[string]refused `json:"refused,omitempty"`
}

type refused struct {
	At     time.Time `json:"at"`
	Digest string    `json:"digest"`
}

// Obtain implements credential.Source. Without a usable state each source counts as one that no server refused.
func (s *Source) Obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	now := s.Now()
	var known state
	_ = json.Unmarshal(request.State(), &known)
	maps.DeleteFunc(known.Refused, func(_ string, r refused) bool { return now.Sub(r.At).Abs() >= refusedFor })
	if known.Refused == nil {
		known.Refused = map[string]refused{}
	}
	if request.Refused && slices.ContainsFunc(s.Parts, func(p Part) bool { return p.ID == known.Current }) {
		known.Refused[known.Current] = refused{At: now, Digest: digest(request.Previous.Credential)}
	}
	failed := &Error{}
	for _, part := range known.order(s.Parts) {
		got, err := s.serve(ctx, part, known.Refused[part.ID], request)
		if err != nil {
			failed.add(part, err)
			continue
		}
		for i := range failed.parts {
			request.Terminal.Notice("%s: %v; %s is taken instead", failed.parts[i].Name, failed.errs[i], part.Name)
		}
		if got.Expires.IsZero() {
			got.Expires = now.Add(unknownLife)
		}
		known.Current = part.ID
		next, err := json.Marshal(known)
		return got, next, err
	}
	next, err := json.Marshal(known)
	if err != nil {
		return credential.Credential{}, nil, err
	}
	return credential.Credential{}, next, failed
}

// order returns those that no server refused, and then the others, the one first whose refusal is the oldest.
func (s *state) order(parts []Part) []Part {
	ordered := slices.Clone(parts)
	slices.SortStableFunc(ordered, func(a, b Part) int { return s.Refused[a.ID].At.Compare(s.Refused[b.ID].At) })
	return ordered
}

// serve returns the credential of one source, unless it is the one that was refused.
func (s *Source) serve(ctx context.Context, part Part, last refused, request credential.Request) (credential.Credential, error) {
	info := request.ExecInfo
	// Which client it is for, and what that was served before, is known here alone.
	info.FromClient = false
	provider := part.Provider
	provider.Terminal, provider.NewerThan = request.Terminal, last.At
	got, err := provider.Serve(ctx, part.Source, info)
	if err == nil && digest(got) == last.Digest {
		return credential.Credential{}, errRefusedBefore
	}
	return got, err
}

func digest(c credential.Credential) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(c.Token.Reveal()+"\n"+string(c.CertificatePEM))))
}

// Error has the failure of each source. It is a credential.ErrNeedsPerson if one of them is, and a credential.ErrRefused if all are.
type Error struct {
	parts []Part
	errs  []error
}

func (e *Error) add(part Part, err error) {
	e.parts, e.errs = append(e.parts, part), append(e.errs, err)
}

func (e *Error) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = e.parts[i].Name + ": " + err.Error()
	}
	return "no source has a credential: " + strings.Join(texts, "; ")
}

// Is implements what errors.Is calls.
func (e *Error) Is(target error) bool {
	is := func(err error) bool { return errors.Is(err, target) }
	switch target {
	case credential.ErrNeedsPerson:
		return slices.ContainsFunc(e.errs, is)
	case credential.ErrRefused:
		return !slices.ContainsFunc(e.errs, func(err error) bool { return !is(err) })
	}
	return false
}

// Login are the words of the command line of the first source that needs a person; none if no source does.
func (e *Error) Login() []string {
	for i, err := range e.errs {
		if errors.Is(err, credential.ErrNeedsPerson) {
			return e.parts[i].Login
		}
	}
	return nil
}
