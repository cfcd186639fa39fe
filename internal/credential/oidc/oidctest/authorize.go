package oidctest

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// code is an authorization code, with the request that it was given for.
type code struct {
	login                  *login
	redirectURI, challenge string
	expires                time.Time
	used                   bool
}

const cookieName = "session"

// authorize shows a login page to a browser without a session, and redirects the others with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := r.URL.Query()
	for name, values := range query {
		if len(values) != 1 {
			http.Error(w, name+" is there twice", http.StatusBadRequest)
			return
		}
	}
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Scheme != "http" || !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, back.Hostname()) || back.Port() == "" {
		http.Error(w, "redirect_uri is not registered", http.StatusBadRequest)
		return
	}
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("state") == "" || query.Get("nonce") == "" ||
		query.Get("code_challenge_method") != "S256" || len(query.Get("code_challenge")) != 43 ||
		!slices.Contains(strings.Fields(query.Get("scope")), "openid") {
		http.Error(w, "the request lacks something", http.StatusBadRequest)
		return
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil || p.sessions[cookie.Value] == "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Log in</title><form method="post" action="/login"><input name="return" type="hidden" value="%s"><input name="user"><button>Log in</button></form>`,
			html.EscapeString(r.URL.RequestURI()))
		return
	}
	answer := map[string]string{"state": query.Get("state"), "iss": p.Issuer}
	if p.behavior.Deny {
		answer["error"], answer["error_description"] = "access_denied", "<b>not</b> today"
	} else {
		text := p.next("code")
		login := &login{user: p.sessions[cookie.Value], scope: query.Get("scope"), nonce: query.Get("nonce")}
		p.codes[text] = &code{login: login, redirectURI: query.Get("redirect_uri"), challenge: query.Get("code_challenge"), expires: p.now.Add(time.Minute)}
		answer["code"] = text
	}
	if p.behavior.Redirect != nil {
		p.behavior.Redirect(answer)
	}
	values := url.Values{}
	for name, value := range answer {
		values.Set(name, value)
	}
	back.RawQuery = values.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// logIn gives the browser a session, without a password.
func (p *Provider) logIn(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	user, back := r.PostFormValue("user"), r.PostFormValue("return")
	if user == "" || !strings.HasPrefix(back, "/authorize?") {
		http.Error(w, "the form lacks something", http.StatusBadRequest)
		return
	}
	cookie := p.next("cookie")
	p.sessions[cookie] = user
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, Path: "/", Secure: true, HttpOnly: true})
	http.Redirect(w, r, back, http.StatusSeeOther)
}
