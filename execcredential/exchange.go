package execcredential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// exchange is one request of a caller, and what was tried for it.
type exchange struct {
	*presenter
	request      *http.Request // the caller's, or a copy whose body can be read again
	original     *http.Request // the caller's
	body         *keptBody     // that can't be read again, of a request that may not be sent for want of a signature
	sent         int
	response     *http.Response // 401, until there is a better one
	err          error
	failures     []error // of sources
	skipped      *Credential
	skippedIndex int
}

// try uses source i, and reports whether that is the end of it.
func (e *exchange) try(i int, s *Source) (done bool) {
	ctx := e.request.Context()
	credential, err := s.Get(ctx)
	if err != nil {
		e.failures = append(e.failures, err)
		return ctx.Err() != nil && e.response == nil && e.abandon(err)
	}
	if refused := e.refused[i].Load(); refused.of(credential, e.server()) {
		other, err := e.another(ctx, s, refused)
		if other == nil || err != nil {
			if e.skipped == nil {
				e.skipped, e.skippedIndex = credential, i
			}
			return false
		}
		credential = other
	}
	repeated := answered
	for next := credential; ; {
		before := e.sent
		e.response, e.err = e.deliver(i, next)
		if e.sent > before {
			credential = next
		}
		got := e.outcome()
		if got == answered {
			return true
		}
		var other *Credential
		if got > repeated {
			other = e.instead(ctx, got, s, credential)
		}
		switch steps[situation{got, e.repeatable(got), other != nil}] {
		case again:
			next, repeated = other, got
		case nextSource:
			e.giveUp(i, got, credential)
			return false
		case end:
			e.giveUp(i, got, credential)
			return true
		}
	}
}

// outcome is the result of sending a request with a credential. Each is repeated at most once with another credential, in this order: once
// the server has answered 401, a key that does not sign gets no second try.
type outcome int

const (
	answered     outcome = iota // by anything but 401, or by an error of the connection
	unsigned                    // the key did not sign, and nothing was sent
	unauthorized                // 401
)

// situation is an outcome, whether the request can be sent again, and whether the source has another credential for it.
type situation struct {
	outcome           outcome
	repeatable, other bool
}

// step is what follows.
type step int

const (
	end        step = iota // the caller gets what there is
	again                  // the same source, with its other credential
	nextSource             // the next source of the account
)

// steps is the table of what follows an outcome but answered, which is always the end.
var steps = map[situation]step{
	{unsigned, true, true}:       again,
	{unsigned, true, false}:      nextSource,
	{unsigned, false, true}:      end,
	{unsigned, false, false}:     end,
	{unauthorized, true, true}:   again,
	{unauthorized, true, false}:  nextSource,
	{unauthorized, false, true}:  end,
	{unauthorized, false, false}: end,
}

// outcome is that of the last sending.
func (e *exchange) outcome() outcome {
	if failure := asSignError(e.err); failure != nil {
		e.failures = append(e.failures, failure)
		return unsigned
	}
	if e.err == nil && e.response.StatusCode == http.StatusUnauthorized {
		return unauthorized
	}
	return answered
}

// instead returns what source s has in place of a credential after an outcome, or nil.
func (e *exchange) instead(ctx context.Context, got outcome, s *Source, credential *Credential) *Credential {
	if got == unauthorized {
		other, _ := s.rejectedBy(ctx, e.server(), credential) // a failed run is remembered by the source; the caller gets the server's answer
		return other
	}
	other, err := s.resigned(ctx, credential)
	if err != nil {
		e.failures = append(e.failures, err)
	}
	return other
}

// repeatable reports whether the request can be sent again after an outcome.
func (e *exchange) repeatable(got outcome) bool {
	return e.replayable() || got == unsigned && e.body != nil && e.body.whole()
}

// giveUp records that a credential of source i was of no use.
func (e *exchange) giveUp(i int, got outcome, credential *Credential) {
	refused := &refusal{Credential: credential, unsigned: got == unsigned}
	if got == unsigned {
		e.err = join(e.failures)
	} else {
		refused.server = e.server()
	}
	if len(e.account.sources) > 1 {
		e.refused[i].Store(refused)
	}
}

// server is the one that the request goes to.
func (e *exchange) server() string { return e.request.URL.Host }

// another returns what source s has instead of a credential that was of no use before, or nil.
func (e *exchange) another(ctx context.Context, s *Source, refused *refusal) (*Credential, error) {
	if refused.unsigned {
		s.signed(refused.certificate, errUnsigned)
		return s.resigned(ctx, refused.Credential)
	}
	return s.rejectedBy(ctx, refused.server, refused.Credential)
}

func (e *exchange) abandon(err error) bool {
	if e.sent == 0 {
		closeBody(e.request)
	}
	e.err = err
	return true
}

// deliver sends the request, with a new body if it was sent before. Before a second call, repeatable must be true.
func (e *exchange) deliver(i int, credential *Credential) (*http.Response, error) {
	request := authorized(e.request, credential)
	switch {
	case request.Body == nil || request.Body == http.NoBody:
	case e.body != nil:
		request.Body = e.body.again()
	case e.sent > 0:
		body, err := e.request.GetBody()
		switch {
		case err != nil && e.response != nil:
			return e.response, nil
		case err != nil:
			return nil, fmt.Errorf("read the body of a request again: %w", err)
		}
		request.Body = body
	case request.GetBody == nil && inDevice(credential.certificate):
		e.body = &keptBody{body: request.Body}
		request.Body = e.body
	}
	if e.response != nil {
		drop(e.response.Body)
		e.response = nil
	}
	if credential.authorization == nil && !overTLS(request.URL) {
		closeBody(request)
		return nil, &PlainHTTPError{Server: plainServer(request.URL), CertificateOnly: true}
	}
	e.sent++
	response, err := e.send(request, i, credential)
	if response != nil {
		response.Request = e.original // the copy has the token, and callers log what they sent
		e.account.sources[i].answered(e.server(), credential, response.StatusCode)
	}
	return response, err
}

// drop closes the body of an answer that is not needed. The connection can be used again only if it was read; a server that does not
// write it delays the caller for a moment only.
func drop(body io.ReadCloser) {
	defer time.AfterFunc(drain, func() { _ = body.Close() }).Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// finish leaves the body to a reader that still reads it.
func (e *exchange) finish() {
	if e.body != nil {
		e.body.finish()
	}
}

// replayable reports whether a request that was sent can be sent again.
func (e *exchange) replayable() bool {
	return e.request.Body == nil || e.request.Body == http.NoBody || e.request.GetBody != nil
}

// errUnsigned stands for an earlier error of a key.
var errUnsigned = errors.New("the key did not sign")

func asSignError(err error) *SignError {
	if err == nil {
		return nil
	}
	var unsigned *SignError
	errors.As(err, &unsigned)
	return unsigned
}
