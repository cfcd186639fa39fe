package oidc

import (
	"strings"

	"github.com/credence-id/credence/internal/credential"
)

// textLimit bounds, in characters, text of a provider or a browser that is shown.
const textLimit = 300

// plain is what is shown of such a text.
func plain(text string) string { return credential.Plain(text, textLimit) }

// without takes secrets out of a text that repeats them.
func without(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
