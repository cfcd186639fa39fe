package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Revoke revokes a state at the provider (RFC 7009): its refresh token, and at most providers all tokens of that
// login, end. A state without a refresh token, and a provider without revocation, are not errors.
func (s *Source) Revoke(ctx context.Context, state json.RawMessage) error {
	kept := parseState(state)
	if kept.RefreshToken == "" {
		return nil
	}
	p, err := connect(ctx, s.config)
	if err != nil {
		return fmt.Errorf("revoke the login to %s: %w", s.config.Issuer, err)
	}
	defer p.close()
	if p.document.Revocation == "" {
		return nil
	}
	form := url.Values{"token": {kept.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if _, err := p.post(ctx, p.document.Revocation, form, kept.RefreshToken); err != nil {
		return fmt.Errorf("revoke the login to %s: %w", s.config.Issuer, classified(err))
	}
	return nil
}
