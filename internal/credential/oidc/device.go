package oidc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// Polling intervals of a device (RFC 8628 sections 3.2 and 3.5).
const (
	defaultInterval = 5 * time.Second
	slowDown        = 5 * time.Second
	longestInterval = 5 * time.Minute
)

// deviceCode is the code that the user enters, and the one for polling (RFC 8628 section 3.2).
type deviceCode struct {
	device, user, uri, complete string
	lifetime, interval          time.Duration
}

// byDevice shows the user an address and a code, and polls until the code was entered.
func (p *session) byDevice(ctx context.Context, terminal credential.Terminal) (answer, error) {
	if p.document.DeviceAuthorization == "" {
		return answer{}, fmt.Errorf("the provider has no device codes: %w", credential.ErrRefused)
	}
	// PKCE (RFC 7636), which a provider may require of a client in every flow. Others ignore it.
	attempt, err := newAttempt(p.Random)
	if err != nil {
		return answer{}, err
	}
	form := url.Values{"scope": {p.document.scopes(p.Scopes)}, "code_challenge": {attempt.challenge()}, "code_challenge_method": {"S256"}}
	for name, value := range p.Parameters {
		form.Set(name, value)
	}
	body, err := p.post(ctx, p.document.DeviceAuthorization, form)
	if err != nil {
		return answer{}, fmt.Errorf("request a device code: %w", classified(err))
	}
	code, err := p.parseDeviceCode(body)
	if err != nil {
		return answer{}, fmt.Errorf("request a device code: %w", err)
	}
	lifetime := min(code.lifetime, p.LoginTimeout)
	terminal.Notice("To log in to %s, open %s on any device and enter the code %s, within %s", p.Issuer, code.uri, code.user, lifetime)
	if code.complete != "" {
		terminal.Notice("Or open %s, if it shows the code %s", code.complete, code.user)
	}
	return p.poll(ctx, code, attempt.verifier, p.Now().Add(lifetime))
}

// poll requests until there is an answer, or the code has expired. An outage slows it down and does not end it.
func (p *session) poll(ctx context.Context, code deviceCode, verifier string, until time.Time) (answer, error) {
	interval := code.interval
	for {
		left := until.Sub(p.Now())
		if left <= 0 {
			return answer{}, fmt.Errorf("the code %s was not entered in time: %w", code.user, credential.ErrNeedsPerson)
		}
		if err := p.Wait(ctx, min(interval, left)); err != nil {
			return answer{}, err
		}
		a, err := p.redeem(ctx, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {code.device}, "code_verifier": {verifier}})
		var refused *refusal
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		case errors.As(err, &refused) && refused.code == "authorization_pending":
		case errors.As(err, &refused) && refused.code == "slow_down":
			interval = min(interval+slowDown, longestInterval)
		case errors.As(err, &refused) && refused.code == "expired_token":
			return answer{}, fmt.Errorf("the code %s was not entered in time: %w: %w", code.user, err, credential.ErrNeedsPerson)
		case errors.Is(err, errOutage), refused != nil && refused.outage():
			interval = min(2*interval, longestInterval)
		default:
			return answer{}, fmt.Errorf("redeem the device code: %w", classified(err))
		}
	}
}

func (p *session) parseDeviceCode(body []byte) (deviceCode, error) {
	var wire struct {
		DeviceCode string  `json:"device_code"`
		UserCode   string  `json:"user_code"`
		URI        string  `json:"verification_uri"`
		URL        string  `json:"verification_url"` // Google's name for it
		Complete   string  `json:"verification_uri_complete"`
		ExpiresIn  seconds `json:"expires_in"`
		Interval   seconds `json:"interval"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return deviceCode{}, errors.New("the answer is not a JSON object of the expected form")
	}
	issuer, err := issuerURL(p.Issuer)
	if err != nil {
		return deviceCode{}, err
	}
	if wire.DeviceCode == "" || wire.UserCode == "" || wire.ExpiresIn <= 0 {
		return deviceCode{}, errors.New("the answer lacks one of device_code, user_code and expires_in")
	}
	wire.URI = cmp.Or(wire.URI, wire.URL)
	if err := endpointURL(issuer, "verification_uri", wire.URI); err != nil {
		return deviceCode{}, err
	}
	if plain(wire.URI) != wire.URI {
		return deviceCode{}, errors.New("its verification_uri cannot be shown to a person")
	}
	code := deviceCode{
		device: wire.DeviceCode, user: plain(wire.UserCode), uri: wire.URI,
		lifetime: time.Duration(wire.ExpiresIn), interval: time.Duration(wire.Interval),
	}
	if wire.Complete != "" && plain(wire.Complete) == wire.Complete && endpointURL(issuer, "verification_uri_complete", wire.Complete) == nil {
		code.complete = wire.Complete
	}
	if code.interval <= 0 {
		code.interval = defaultInterval
	}
	code.interval = min(max(code.interval, time.Second), longestInterval)
	return code, nil
}
