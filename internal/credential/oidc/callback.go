package oidc

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
)

// callback is what the browser comes back to. It takes one answer, that of its own login, and refuses all others.
type callback struct {
	address, path string
	state         string
	issuer        string
	// namesItself: the provider has promised to name itself in its answer (RFC 9207), so that one without a name is forged.
	namesItself bool
	taken       atomic.Bool
	arrivals    chan *arrival
}

// arrival is an answer that was taken: a code, or the provider's no. The browser waits for the outcome.
type arrival struct {
	code    string
	refused *refusal
	outcome chan error
	// served is closed when the browser has its page, or is gone.
	served chan struct{}
}

func newCallback(address, path, state, issuer string, namesItself bool) *callback {
	path = cmp.Or(path, "/")
	return &callback{address: address, path: path, state: state, issuer: issuer, namesItself: namesItself, arrivals: make(chan *arrival, 1)}
}

// Errors of an answer, as the user sees them.
var (
	errNotOfThisLogin  = errors.New("this page does not belong to the login that is waiting: start again from the program that started the login")
	errAnotherProvider = errors.New("this answer comes from another provider than the one of this login")
	errNoAnswer        = errors.New("this answer has neither exactly one code nor exactly one error")
	errTaken           = errors.New("the answer to this login was taken already")
)

// ServeHTTP implements http.Handler.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != c.address && r.Host+":80" != c.address: // another name that resolves to this address
		writePage(w, http.StatusMisdirectedRequest, errNotOfThisLogin)
		return
	case r.URL.Path != c.path && r.URL.EscapedPath() != c.path:
		writePage(w, http.StatusNotFound, errNotOfThisLogin)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		writePage(w, http.StatusMethodNotAllowed, errNotOfThisLogin)
		return
	}
	came, err := c.read(r.URL.RawQuery)
	if err != nil {
		writePage(w, http.StatusBadRequest, err)
		return
	}
	if c.taken.Swap(true) {
		writePage(w, http.StatusConflict, errTaken)
		return
	}
	defer close(came.served)
	c.arrivals <- came
	select {
	case err := <-came.outcome:
		writePage(w, http.StatusOK, err)
	case <-r.Context().Done():
	}
}

// read judges the query of an answer (RFC 6749 sections 4.1.2 and 3.1, RFC 9207 section 2.4). Its error is for the person.
func (c *callback) read(raw string) (*arrival, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errNotOfThisLogin
	}
	if len(query["state"]) != 1 || subtle.ConstantTimeCompare([]byte(query["state"][0]), []byte(c.state)) != 1 {
		return nil, errNotOfThisLogin
	}
	if issuers := query["iss"]; len(issuers) > 1 || len(issuers) == 1 && issuers[0] != c.issuer || len(issuers) == 0 && c.namesItself {
		return nil, errAnotherProvider
	}
	came := &arrival{outcome: make(chan error, 1), served: make(chan struct{})}
	switch codes, errs := query["code"], query["error"]; {
	case len(errs) == 1 && errs[0] != "" && len(codes) == 0:
		came.refused = &refusal{plain(errs[0]), plain(query.Get("error_description"))}
	case len(codes) == 1 && codes[0] != "" && len(errs) == 0:
		came.code = codes[0]
	default:
		return nil, errNoAnswer
	}
	return came, nil
}
