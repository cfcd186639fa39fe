package tokenendpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// Check returns an error, a predicate, for URLs that secrets must not be sent to: all but https, and http on this machine.
func Check(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Fragment != "" || u.User != nil:
		return errors.New("must be a URL with a host, and without a user or a fragment")
	case u.Scheme == "https", u.Scheme == "http" && Loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("must be https, not %q: tokens are sent in the clear to this machine alone", u.Scheme)
}

// Loopback reports whether a host of a URL is this machine, by its text and not by a resolver.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
