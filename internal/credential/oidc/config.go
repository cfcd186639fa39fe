package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// Config is the provider and the client of a login. The zero value of all but Issuer and ClientID works.
type Config struct {
	settings.Settings

	// Now, Random and Wait are the clock and the randomness; nil: the real ones. Wait returns nil when the time has passed, and the
	// error of the context if that ends first.
	Now    func() time.Time
	Random io.Reader
	Wait   func(context.Context, time.Duration) error
}

const (
	defaultRedirect = "http://127.0.0.1/callback"
	defaultTimeout  = 10 * time.Minute
)

// reserved are parameters of the flow itself: setting them could switch its protection off.
var reserved = []string{
	"response_type", "response_mode", "client_id", "client_secret", "redirect_uri", "scope", "state", "nonce",
	"code_challenge", "code_challenge_method", "request", "request_uri",
}

// completed returns c with its defaults, or what is wrong with it.
func (c Config) completed() (Config, error) {
	if _, err := issuerURL(c.Issuer); err != nil {
		return c, err
	}
	if c.ClientID == "" {
		return c, errors.New("no client ID: give the one under which the provider knows this program")
	}
	c.Present = cmp.Or(c.Present, settings.IDToken)
	if c.Present != settings.IDToken && c.Present != settings.AccessToken {
		return c, fmt.Errorf("unknown token %q: it is %q or %q", c.Present, settings.IDToken, settings.AccessToken)
	}
	c.Flow = cmp.Or(c.Flow, settings.Auto)
	if c.Flow != settings.Auto && c.Flow != settings.Browser && c.Flow != settings.Device {
		return c, fmt.Errorf("unknown flow %q: it is %q, %q or %q", c.Flow, settings.Auto, settings.Browser, settings.Device)
	}
	for name := range c.Parameters {
		// Some providers take names in any case.
		if slices.Contains(reserved, strings.ToLower(name)) {
			return c, fmt.Errorf("parameter %q belongs to the flow itself and cannot be given", name)
		}
	}
	for _, scope := range c.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return c, fmt.Errorf("invalid scope %q: give one word for each", scope)
		}
	}
	c.RedirectURI = cmp.Or(c.RedirectURI, defaultRedirect)
	if _, err := c.redirect(); err != nil {
		return c, err
	}
	if c.LoginTimeout < 0 {
		return c, fmt.Errorf("login timeout %s is negative", c.LoginTimeout)
	}
	c.LoginTimeout = cmp.Or(c.LoginTimeout, defaultTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Wait == nil {
		c.Wait = credential.Pause
	}
	return c, nil
}

// redirect returns the parsed RedirectURI and the ports to try on it.
func (c Config) redirect() (redirect, error) {
	u, err := url.Parse(c.RedirectURI)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return redirect{}, fmt.Errorf("redirect URI %q: it must look like %s", c.RedirectURI, defaultRedirect)
	}
	host := u.Hostname()
	if host != "127.0.0.1" && host != "::1" && host != "localhost" {
		return redirect{}, fmt.Errorf("redirect URI %q: its host must be 127.0.0.1, [::1] or localhost, since nothing else is listened on", c.RedirectURI)
	}
	ports := slices.Clone(c.Ports)
	if u.Port() != "" {
		if len(ports) > 0 {
			return redirect{}, fmt.Errorf("redirect URI %q has a port: give no others", c.RedirectURI)
		}
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return redirect{}, fmt.Errorf("redirect URI %q: invalid port %q", c.RedirectURI, u.Port())
		}
		ports = []int{int(port)}
	}
	for _, port := range ports {
		if port < 0 || port > 65535 {
			return redirect{}, fmt.Errorf("invalid port %d", port)
		}
	}
	if len(ports) == 0 {
		ports = []int{0}
	}
	return redirect{host: host, path: u.EscapedPath(), ports: ports}, nil
}
