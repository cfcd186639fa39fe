package comparison

import (
	"context"
	"net/http"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/relyingparty"
)

// Documents are the two documents of an issuer as bytes from outside, unchecked.
type Documents struct {
	Configuration, JWKS []byte
}

// Answer is how one document is served.
type Answer struct {
	URL  string // the requested URL
	Body []byte
	// ContentType and CacheControl are header fields as they were sent; empty if absent.
	ContentType, CacheControl string
}

// Served is how both documents are served.
type Served struct {
	Configuration, JWKS Answer
}

// Documents returns the bytes alone.
func (s Served) Documents() Documents {
	return Documents{Configuration: s.Configuration.Body, JWKS: s.JWKS.Body}
}

// FetchError is why a document could not be fetched.
type FetchError struct {
	URL string
	// Code is the status of the answer; 0 without a complete answer.
	Code int
	Err  error
}

func (e *FetchError) Error() string { return "fetch " + e.URL + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// Outage reports whether the failure is independent of the published document: there was no answer, or one that a server gives when
// it cannot do its work. False means that something else than the document is there, or nothing.
func (e *FetchError) Outage() bool {
	return e.Code == 0 || e.Code >= http.StatusInternalServerError || e.Code == http.StatusTooManyRequests
}

// Fetch returns what is served under an issuer's URL, or under another one with the same layout: LOCATION/jwks and
// LOCATION/.well-known/openid-configuration. The location is https and has no trailing slash. A nil client trusts the
// authorities of this machine. Every error is a *FetchError.
func Fetch(ctx context.Context, client *http.Client, location string) (Served, error) {
	// The key set comes first: fetched in this order while the documents change, the keys are never newer than the
	// algorithms that the configuration lists for them.
	jwks, err := fetch(ctx, client, location+"/jwks")
	if err != nil {
		return Served{}, err
	}
	configuration, err := fetch(ctx, client, location+"/.well-known/openid-configuration")
	if err != nil {
		return Served{}, err
	}
	return Served{Configuration: configuration, JWKS: jwks}, nil
}

func fetch(ctx context.Context, client *http.Client, address string) (Answer, error) {
	body, header, code, err := relyingparty.Fetch(ctx, client, address, discovery.MaxDocumentBytes)
	if err != nil {
		return Answer{}, &FetchError{URL: address, Code: code, Err: err}
	}
	return Answer{URL: address, Body: body, ContentType: header.Get("Content-Type"), CacheControl: header.Get("Cache-Control")}, nil
}
