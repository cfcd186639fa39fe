package execcredential

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
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
	server   string // that refused it; empty if the key did not sign
	unsigned bool
}

// of reports whether r is about credential at server. Another way to the same key may sign.
func (r *refusal) of(credential *Credential, server string) bool {
	return r != nil && (r.unsigned || r.server == server) && (r.Credential == credential || !r.unsigned && r.Equal(credential))
}

func newPresenter(a *Account, send func(*http.Request, int, *Credential) (*http.Response, error)) *presenter {
	return &presenter{account: a, refused: make([]atomic.Pointer[refusal], len(a.sources)), send: send}
}

func (p *presenter) roundTrip(request *http.Request) (*http.Response, error) {
	if p.account.err != nil {
		closeBody(request)
		return nil, p.account.err
	}
	if request == nil || request.URL == nil {
		closeBody(request)
		return nil, errNoURL
	}
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

var errNoURL = &ConfigError{Field: "request", Reason: "is nil or has no URL; http.NewRequestWithContext makes one"}

// closeBody does what a round tripper must with a request that it does not send.
func closeBody(request *http.Request) {
	if request != nil && request.Body != nil {
		_ = request.Body.Close()
	}
}

// withShortBody makes a body that can be read only once one that can be read again, if its length is known and short: those that a reverse
// proxy hands on are of this kind. The error is what reading it gave.
func withShortBody(request *http.Request) (*http.Request, error) {
	if request.Body == nil || request.Body == http.NoBody || request.GetBody != nil || request.ContentLength <= 0 || request.ContentLength > shortBody {
		return request, nil
	}
	type read struct {
		content []byte
		err     error
	}
	done := make(chan read, 1)
	go func() {
		defer closeBody(request)
		content, err := io.ReadAll(io.LimitReader(request.Body, request.ContentLength+1)) // one more shows that ContentLength is too small
		done <- read{content, err}
	}()
	var content []byte
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("read the body of a request: %w", r.err)
		}
		content = r.content
	case <-request.Context().Done():
		closeBody(request) // so that reading ends
		return nil, fmt.Errorf("read the body of a request: %w", context.Cause(request.Context()))
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
// follows redirects calls its transport again, and would hand the token to the other server. A request that was sent away stays so: on
// its way back, another server has chosen its URL.
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
