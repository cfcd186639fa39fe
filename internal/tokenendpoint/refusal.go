package tokenendpoint

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Refusal returns the fields of an answer that is an error (RFC 6749 section 5.2), empty where it has none. They are text of the server, and may
// repeat secrets.
func Refusal(body []byte) (code, description string) {
	var wire struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(body, &wire)
	return wire.Code, wire.Description
}

// words are parts of a text that could be a secret, or a part of one.
var words = regexp.MustCompile(`[^\s"'<>(),;:]{6,}`)

// Redact removes secrets from a text of the server: some repeat what they were sent, perhaps cut off.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return words.ReplaceAllStringFunc(text, func(word string) string {
		for _, secret := range secrets {
			if strings.Contains(secret, strings.TrimRight(word, ".…")) {
				return "[redacted]"
			}
		}
		return word
	})
}
