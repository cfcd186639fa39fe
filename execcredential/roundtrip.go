package execcredential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// shortBody is how many bytes of a body are kept until the server has answered.
const shortBody = 64 << 10

// presenter sends requests with the credentials of an account, and again when the server answers 401.
type presenter struct {
	account *Account
	// refused has for each source the credential that was of no use after all that could be done. It is kept only where there is another
	// source to go on with.
	refused []atomic.Pointer[refusal]
	// send sends a request with a credential of source i, and without one if credential is nil.
	send func(request *http.Request, i int, credential *Credential) (*http.Response, error)
}

// refusal is why a credential was of no use: the server answered 401, or the key did not sign.
type refusal struct {
	*Credential
	unsigned bool
}

// of reports whether r is about credential. Another way to the same key may sign.
func (r *refusal) of(credential *Credential) bool {
	return r != nil && (r.Credential == credential || !r.unsigned && r.Equal(credential))
}

func newPresenter(a *Account, send func(*http.Request, int, *Credential) (*http.Response, error)) *presenter {
	return &presenter{account: a, refused: make([]atomic.Pointer[refusal], len(a.sources)), send: send}
}

func (p *presenter) roundTrip(request *http.Request) (*http.Response, error) {
	// Credentials of the caller win, and none go to where a server redirects to.
	if request.Header.Get("Authorization") != "" || redirectedAway(request) {
		return p.send(request, 0, nil)
	}
	for _, s := range p.account.sources {
		if err := s.pool.plain.check(request.URL); err != nil {
			closeBody(request)
			return nil, err
		}
	}
	rereadable, err := withShortBody(request)
	if err != nil {
		return nil, err
	}
	e := exchange{presenter: p, request: rereadable, original: request}
	defer e.finish()
	for i, s := range p.account.sources {
		if done := e.try(i, s); done {
			return e.response, e.err
		}
	}
	switch {
	case e.response != nil:
		return e.response, nil
	case e.skipped != nil:
		return e.deliver(e.skippedIndex, e.skipped)
	}
	if e.sent == 0 {
		closeBody(rereadable)
	}
	return nil, join(e.failures)
}

// closeBody does what a round tripper must with a request that it does not send.
func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

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
	if refused := e.refused[i].Load(); refused.of(credential) {
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
		// A failed run is remembered by the source. The caller gets what the server said.
		if other, _ := s.Rejected(ctx, credential); other != nil && e.replayable() {
			credential = other
			e.response, e.err = e.deliver(i, credential)
		}
	}
	switch unsigned := asSignError(e.err); {
	case unsigned != nil:
		e.failures = append(e.failures, unsigned)
		return e.unsigned(i, credential)
	case e.err != nil || e.response.StatusCode != http.StatusUnauthorized:
		return true
	}
	e.refuse(i, &refusal{Credential: credential})
	return !e.replayable()
}

// another returns what source s has instead of a credential that was of no use before, or nil.
func (e *exchange) another(ctx context.Context, s *Source, refused *refusal) (*Credential, error) {
	if refused.unsigned {
		s.signed(refused.certificate, errUnsigned)
		return s.resigned(ctx, refused.Credential)
	}
	return s.Rejected(ctx, refused.Credential)
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

// deliver sends the request, with a new body if it was sent before. Whoever calls it again asks sendable or replayable before.
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
	}
	return response, err
}

// drop closes the body of an answer that nobody wants. The connection can be used again only if it was read; a server that does not write
// it holds nobody up for long.
func drop(body io.ReadCloser) {
	defer time.AfterFunc(drain, func() { _ = body.Close() }).Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// finish leaves the body to whoever still reads it.
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

// errUnsigned stands for what a key said before.
var errUnsigned = errors.New("the key did not sign")

func asSignError(err error) *SignError {
	unsigned, _ := errors.AsType[*SignError](err)
	return unsigned
}

// withShortBody makes a body that can be read only once one that can be read again, if it says that it is short: those that a reverse
// proxy hands on are of this kind. The error is what reading it gave.
func withShortBody(request *http.Request) (*http.Request, error) {
	if request.Body == nil || request.Body == http.NoBody || request.GetBody != nil || request.ContentLength <= 0 || request.ContentLength > shortBody {
		return request, nil
	}
	defer closeBody(request)
	content, err := io.ReadAll(io.LimitReader(request.Body, request.ContentLength+1)) // one more shows that it says too little
	if err != nil {
		return nil, fmt.Errorf("read the body of a request: %w", err)
	}
	if int64(len(content)) != request.ContentLength {
		return nil, fmt.Errorf("the body of a request is not as long as its ContentLength, %d bytes", request.ContentLength)
	}
	copied := new(http.Request)
	*copied = *request
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	copied.Body, _ = copied.GetBody()
	return copied, nil
}

// authorized is a copy of request that carries the token: a round tripper leaves the caller's request alone.
func authorized(request *http.Request, credential *Credential) *http.Request {
	copied := new(http.Request)
	*copied = *request
	copied.Header = make(http.Header, len(request.Header)+1)
	for name, values := range request.Header {
		copied.Header[name] = values
	}
	if credential.authorization != nil {
		copied.Header["Authorization"] = credential.authorization
	}
	return copied
}

// redirectedAway reports whether a server sent the client to another one with this request, or from TLS to plain text. A client that
// follows redirects asks its transport again, and would hand the token to whoever it was sent to. What was sent away stays so: on its way
// back, another server has chosen what is asked for.
func redirectedAway(request *http.Request) bool {
	for request.Response != nil && request.Response.Request != nil {
		before := request.Response.Request
		if before.URL.Host != request.URL.Host || before.URL.Scheme == "https" && request.URL.Scheme != "https" {
			return true
		}
		request = before
	}
	return false
}

// wrapper is Account.Wrap.
type wrapper struct {
	presenter *presenter
	base      http.RoundTripper
}

func newWrapper(a *Account, base http.RoundTripper) *wrapper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &wrapper{base: base, presenter: newPresenter(a, func(r *http.Request, _ int, _ *Credential) (*http.Response, error) {
		return base.RoundTrip(r)
	})}
}

func (w *wrapper) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.presenter.roundTrip(request)
}

// CloseIdleConnections closes those of the wrapped round tripper.
func (w *wrapper) CloseIdleConnections() {
	if closer, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
