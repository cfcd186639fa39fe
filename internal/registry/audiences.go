package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/wording"
)

// checkAudiences returns an error unless each audience of the token is one of the registry.
func (r Registry) checkAudiences(token Token) error {
	audiences := audiencesOf(token.Value)
	if len(audiences) == 0 {
		return errors.New("the token that the API answered with has no audience that can be read: check the server in --kubeconfig")
	}
	for _, audience := range audiences {
		if !slices.Contains(r.Audiences, audience) {
			return fmt.Errorf("the identity's token is for audience %q: this registry is handed tokens for %s alone: use an identity with no other audience, or have an admin add it to audiences in --registries",
				wording.AbbreviateTo(audience, 200), wording.Quoted(r.Audiences...))
		}
	}
	return nil
}

// audiencesOf are those of a token (RFC 7519, section 4.1.3: one, or a list). Its signature is not verified: the API has just issued it.
func audiencesOf(token identity.Token) []string {
	payload, ok := identity.Payload(token.Reveal())
	if !ok {
		return nil
	}
	claims, err := strictjson.Object(payload)
	if err != nil {
		return nil
	}
	if audience, ok := strictjson.Text(claims["aud"]); ok {
		return []string{audience}
	}
	audiences, _ := strictjson.Texts(claims["aud"])
	return audiences
}
