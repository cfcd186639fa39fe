package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// errNoBrowser: no browser can be opened here, and a device code is available instead.
var errNoBrowser = errors.New("no browser can be opened here")

// pageTimeout is how long a browser may take to fetch the page with the login's result.
const pageTimeout = 5 * time.Second

// attempt is what makes one login unlike any other: state ties the browser's answer to it, nonce the token, verifier the code.
type attempt struct{ state, nonce, verifier string }

// likeToken begins every JSON Web Token. Text with it is not shown as it is: a login by such an address would fail.
const likeToken = "eyJ"

func newAttempt(random io.Reader) (attempt, error) {
	for {
		var texts [3]string
		for i := range texts {
			var bits [32]byte
			if _, err := io.ReadFull(random, bits[:]); err != nil {
				return attempt{}, fmt.Errorf("read random bytes: %w", err)
			}
			texts[i] = base64.RawURLEncoding.EncodeToString(bits[:])
		}
		a := attempt{texts[0], texts[1], texts[2]}
		if !strings.Contains(strings.Join([]string{a.state, a.nonce, a.challenge()}, " "), likeToken) {
			return a, nil
		}
	}
}

// challenge is the verifier as the browser may see it (RFC 7636 section 4.2, S256).
func (a attempt) challenge() string {
	sum := sha256.Sum256([]byte(a.verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// byBrowser is the authorization code flow on loopback. finish must be called with the outcome: the browser waits for it.
func (p *session) byBrowser(ctx context.Context, terminal credential.Terminal) (answer, expected, func(error), error) {
	fail := func(err error) (answer, expected, func(error), error) { return answer{}, expected{}, nil, err }
	if p.document.Authorization == "" {
		if p.Flow == settings.Auto && p.document.DeviceAuthorization != "" {
			return fail(errNoBrowser)
		}
		return fail(fmt.Errorf("the provider has no authorization_endpoint: %w", credential.ErrRefused))
	}
	attempt, err := newAttempt(p.Random)
	if err != nil {
		return fail(err)
	}
	to, err := p.redirect()
	if err != nil {
		return fail(err)
	}
	listener, err := listen(ctx, to)
	if err != nil {
		return fail(err)
	}
	callback := newCallback(listener.address, to.path, attempt.state, p.Issuer, p.document.NamesItself)
	server := listener.serve(callback)
	closeNow := func() { _ = server.Close() }

	address := p.authorizationURL(attempt, listener.redirectURI)
	if err := terminal.OpenURL(address); err != nil {
		if p.Flow == settings.Auto && p.document.DeviceAuthorization != "" {
			closeNow()
			return fail(errNoBrowser)
		}
		terminal.Notice("To log in to %s, open this address in a browser on this machine, within %s: %s", p.Issuer, p.LoginTimeout, address)
	} else {
		terminal.Notice("Log in to %s in the browser that opens, within %s. If it does not, open: %s", p.Issuer, p.LoginTimeout, address)
	}

	came, err := p.await(ctx, callback)
	if err != nil {
		closeNow()
		return fail(err)
	}
	finish := func(outcome error) {
		came.outcome <- outcome
		// The browser gets its page before the listener closes, unless it does not fetch it in time. Shutdown would wait for
		// connections that browsers open in advance, too.
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageTimeout)
		defer cancel()
		select {
		case <-came.served:
		case <-over.Done():
		}
		closeNow()
	}
	a, err := p.exchange(ctx, came, attempt, listener.redirectURI)
	if err != nil {
		finish(err)
		return fail(err)
	}
	return a, expected{nonce: attempt.nonce}, finish, nil
}

// authorizationURL is where the browser is sent (RFC 6749 section 4.1.1, OpenID Connect Core 1.0 section 3.1.2.1, RFC 7636 section 4.3).
func (p *session) authorizationURL(a attempt, redirectURI string) string {
	query := url.Values{
		"response_type":         {"code"},
		"client_id":             {p.ClientID},
		"redirect_uri":          {redirectURI},
		"scope":                 {p.document.scopes(p.Scopes)},
		"state":                 {a.state},
		"nonce":                 {a.nonce},
		"code_challenge":        {a.challenge()},
		"code_challenge_method": {"S256"},
	}
	for name, value := range p.Parameters {
		query.Set(name, value)
	}
	separator := "?"
	if strings.Contains(p.document.Authorization, "?") {
		separator = "&"
	}
	return p.document.Authorization + separator + query.Encode()
}

// await waits for the browser's answer, the end of the person's time, or that of ctx.
func (p *session) await(ctx context.Context, callback *callback) (*arrival, error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	go func() {
		if p.Wait(waiting, p.LoginTimeout) == nil {
			close(over)
		}
	}()
	select {
	case came := <-callback.arrivals:
		return came, nil
	case <-over:
		return nil, fmt.Errorf("no login within %s: %w", p.LoginTimeout, credential.ErrNeedsPerson)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange redeems the code that the browser brought, or returns the error that it brought instead.
func (p *session) exchange(ctx context.Context, came *arrival, a attempt, redirectURI string) (answer, error) {
	if came.refused != nil {
		return answer{}, classified(came.refused)
	}
	got, err := p.redeem(ctx, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {came.code},
		"redirect_uri":  {redirectURI},
		"code_verifier": {a.verifier},
	})
	if err != nil {
		return answer{}, fmt.Errorf("redeem the code: %w", classified(err))
	}
	return got, nil
}

// serve starts a server for the callback on every listener of d.
func (d *loopbackListener) serve(callback *callback) *http.Server {
	server := &http.Server{
		Handler:           callback,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          discard,
	}
	for _, listener := range d.listeners {
		go func() { _ = server.Serve(listener) }()
	}
	return server
}
