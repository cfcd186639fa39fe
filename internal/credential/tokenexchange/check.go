package tokenexchange

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/tokenendpoint"
)

// Check refuses settings that cannot work, or are not safe: only of others are Key and the errors of Obtain without secrets.
func (s *Source) Check() error {
	if err := tokenendpoint.Check(s.Endpoint); err != nil {
		return fmt.Errorf("the token endpoint %w", err)
	}
	switch s.Authentication {
	case "", None:
		if s.ClientSecretFile != "" {
			return fmt.Errorf("a client secret is given, but the client is not to authenticate: choose %s or %s", Basic, Post)
		}
	case Basic, Post:
		if s.ClientID == "" || s.ClientSecretFile == "" {
			return fmt.Errorf("authentication %q needs the client's name and the file of its secret", s.Authentication)
		}
	default:
		return fmt.Errorf("unknown authentication %q: known are %s, %s and %s", s.Authentication, None, Basic, Post)
	}
	for _, resource := range s.Resources {
		// RFC 8693 section 2.1: an absolute URI without a fragment.
		if u, err := url.Parse(resource); err != nil || !u.IsAbs() || strings.Contains(resource, "#") {
			return fmt.Errorf("the resource %q is not an absolute URI without a fragment", resource)
		}
	}
	for _, scope := range s.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \t\r\n\"\\") {
			return fmt.Errorf("the scope %q is not one scope", scope)
		}
	}
	if slices.ContainsFunc(s.Audiences, func(audience string) bool { return audience == "" || strings.ContainsAny(audience, "\r\n") }) {
		return errors.New("an audience is empty, or has more than one line")
	}
	return nil
}
