package oidctest

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

type refreshToken struct {
	login *login
	used  bool
}

// authenticated reports whether a request comes from the client (RFC 6749 section 2.3).
func (p *Provider) authenticated(w http.ResponseWriter, r *http.Request) bool {
	id, secret := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	if basicID, basicSecret, ok := r.BasicAuth(); ok {
		id, secret = basicID, basicSecret
	}
	if id != ClientID || subtle.ConstantTimeCompare([]byte(secret), []byte(p.behavior.ClientSecret)) != 1 {
		writeError(w, "invalid_client", "this client is not known, or its secret is wrong")
		return false
	}
	return true
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.authenticated(w, r) {
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		p.redeemCode(w, r)
	case "refresh_token":
		p.redeemRefreshToken(w, r)
	case "urn:ietf:params:oauth:grant-type:device_code":
		p.redeemDevice(w, r)
	default:
		writeError(w, "unsupported_grant_type", "")
	}
}

// challengeOf is the code_challenge of a request's code_verifier (RFC 7636 section 4.6).
func challengeOf(r *http.Request) string {
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (p *Provider) redeemCode(w http.ResponseWriter, r *http.Request) {
	c := p.codes[r.PostFormValue("code")]
	if c == nil {
		writeError(w, "invalid_grant", "no such code")
		return
	}
	if c.used {
		c.login.ended = true
		writeError(w, "invalid_grant", "the code was used already")
		return
	}
	c.used = true
	if challengeOf(r) != c.challenge || r.PostFormValue("redirect_uri") != c.redirectURI || p.now.After(c.expires) {
		writeError(w, "invalid_grant", "the code is not of this request, or expired")
		return
	}
	p.writeTokens(w, c.login, c.login.nonce)
}

// redeemRefreshToken accepts a refresh token once. The second use may be a thief's: it ends the login.
func (p *Provider) redeemRefreshToken(w http.ResponseWriter, r *http.Request) {
	token := p.refresh[r.PostFormValue("refresh_token")]
	switch {
	case token == nil:
		writeError(w, "invalid_grant", "no such refresh token: "+r.PostFormValue("refresh_token"))
	case token.used || token.login.ended:
		token.login.ended = true
		writeError(w, "invalid_grant", "the login is over")
	default:
		token.used = true
		p.writeTokens(w, token.login, "")
	}
}

// End ends every login: as if an administrator did.
func (p *Provider) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, token := range p.refresh {
		token.login.ended = true
	}
}

func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.authenticated(w, r) {
		return
	}
	if token := p.refresh[r.PostFormValue("token")]; token != nil {
		token.login.ended = true
	}
}

func (p *Provider) writeTokens(w http.ResponseWriter, login *login, nonce string) {
	lifetime := p.behavior.IDTokenLifetime
	if lifetime == 0 {
		lifetime = 5 * time.Minute
	}
	access := p.next("access")
	sum := sha256.Sum256([]byte(access))
	claims := map[string]any{
		"iss": p.Issuer, "aud": ClientID, "sub": login.user, "iat": p.now.Unix(), "exp": p.now.Add(lifetime).Unix(),
		"jti": p.next("jti"), "at_hash": base64.RawURLEncoding.EncodeToString(sum[:16]),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p.behavior.Claims != nil {
		p.behavior.Claims(claims)
	}
	tokens := map[string]any{"token_type": "Bearer", "access_token": access, "expires_in": 600, "id_token": p.sign(claims)}
	if slices.Contains(strings.Fields(login.scope), "offline_access") {
		text := p.next("refresh")
		p.refresh[text] = &refreshToken{login: login}
		tokens["refresh_token"] = text
	}
	if p.behavior.Tokens != nil {
		p.behavior.Tokens(tokens)
	}
	writeJSON(w, http.StatusOK, tokens)
}

// sign makes a JWT. It panics on keys and algorithms that do not fit: the test is wrong.
func (p *Provider) sign(claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	if p.behavior.Algorithm == "none" {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none"}`)) + "." + encode(payload) + "."
	}
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "one"}}
	if p.behavior.Key != nil {
		key = jose.SigningKey{Algorithm: jose.SignatureAlgorithm(p.behavior.Algorithm), Key: p.behavior.Key}
	}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}
