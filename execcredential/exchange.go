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
	e.response, e.err = e.deliver(i, credential)
	if unsigned := asSignError(e.err); unsigned != nil {
		e.failures = append(e.failures, unsigned)
		other, err := s.resigned(ctx, credential)
		if err != nil {
			e.failures = append(e.failures, err)
		}
		if other == nil || !e.sendable() {
			return e.unsigned(i, credential)
		}
		credential = other
		e.response, e.err = e.deliver(i, credential)
	}
	if e.err == nil && e.response.StatusCode == http.StatusUnauthorized {
		// A failed run is remembered by the source. The caller gets the server's answer.
		if other, _ := s.rejectedBy(ctx, e.server(), credential); other != nil && e.replayable() {
			before := e.sent
			e.response, e.err = e.deliver(i, other)
			if e.sent > before {
				credential = other
			}
		}
	}
	switch unsigned := asSignError(e.err); {
	case unsigned != nil:
		e.failures = append(e.failures, unsigned)
		return e.unsigned(i, credential)
	case e.err != nil || e.response.StatusCode != http.StatusUnauthorized:
		return true
	}
	e.refuse(i, &refusal{Credential: credential, server: e.server()})
	return !e.replayable()
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

// unsigned is what is left when no key of source i signs: the next source, if the request can still be sent.
func (e *exchange) unsigned(i int, credential *Credential) (done bool) {
	e.refuse(i, &refusal{Credential: credential, unsigned: true})
	e.err = join(e.failures)
	return !e.sendable()
}

func (e *exchange) refuse(i int, r *refusal) {
	if len(e.account.sources) > 1 {
		e.refused[i].Store(r)
	}
}

func (e *exchange) abandon(err error) bool {
	if e.sent == 0 {
		closeBody(e.request)
	}
	e.err = err
	return true
}

// deliver sends the request, with a new body if it was sent before. Before a second call, sendable or replayable must be true.
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

// sendable reports whether a request that was not sent, for want of a signature, can be.
func (e *exchange) sendable() bool {
	return e.replayable() || e.body != nil && e.body.whole()
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
