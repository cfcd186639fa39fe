package oidctest

import (
	"net/http"
	"strings"
	"time"
)

// device is a device code (RFC 8628).
type device struct {
	user          string
	challenge     string
	login         *login
	denied, used  bool
	expires, next time.Time
	interval      time.Duration
}

// deviceLifetime is how long a person may take to enter a code.
const deviceLifetime = 10 * time.Minute

func (p *Provider) deviceAuthorization(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.authenticated(w, r) {
		return
	}
	if r.PostFormValue("code_challenge") == "" || r.PostFormValue("code_challenge_method") != "S256" {
		writeError(w, "invalid_request", "the client must use PKCE: code_challenge with the method S256")
		return
	}
	text, user := p.next("device"), strings.ToUpper(p.next("user"))
	p.devices[text] = &device{
		user: user, challenge: r.PostFormValue("code_challenge"), login: &login{scope: r.PostFormValue("scope")}, expires: p.now.Add(deviceLifetime),
		interval: 5 * time.Second, next: p.now.Add(5 * time.Second),
	}
	answer := map[string]any{
		"device_code": text, "user_code": user, "verification_uri": p.Issuer + "/activate",
		"verification_uri_complete": p.Issuer + "/activate?user_code=" + user, "expires_in": int(deviceLifetime.Seconds()), "interval": 5,
	}
	if p.behavior.Device != nil {
		p.behavior.Device(answer)
	}
	writeJSON(w, http.StatusOK, answer)
}

// activate is the page where a person enters the code.
func (p *Provider) activate(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if d.user == r.PostFormValue("user_code") && p.now.Before(d.expires) {
			d.login.user, d.denied = r.PostFormValue("user"), p.behavior.Deny
			return
		}
	}
	http.Error(w, "no such code", http.StatusBadRequest)
}

func (p *Provider) redeemDevice(w http.ResponseWriter, r *http.Request) {
	d := p.devices[r.PostFormValue("device_code")]
	switch {
	case d == nil || d.used:
		writeError(w, "invalid_grant", "no such device code")
	case !p.now.Before(d.expires):
		writeError(w, "expired_token", "")
	case p.now.Before(d.next):
		d.interval += 5 * time.Second
		d.next = p.now.Add(d.interval)
		writeError(w, "slow_down", "")
	case d.denied:
		writeError(w, "access_denied", "")
	case d.login.user == "":
		d.next = p.now.Add(d.interval)
		writeError(w, "authorization_pending", "")
	case challengeOf(r) != d.challenge:
		writeError(w, "invalid_grant", "the code_verifier is not the one of this device code")
	default:
		d.used = true
		p.writeTokens(w, d.login, "")
	}
}
