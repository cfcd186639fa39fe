package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/strictjson"
)

// tokenServer is a registry whose token server takes tokens of the issuer as passwords. The runtime calls it itself, as the specification of the
// distribution project has it: with the user name and the password in a header of HTTP's Basic authentication.
type tokenServer struct {
	Username string `json:"username"`
}

// defaultUsername is that of token servers that look at the password alone.
const defaultUsername = "credence"

func newTokenServer(_ string, settings json.RawMessage) (exchange, error) {
	var s tokenServer
	if err := strictjson.Known(settings, &s); err != nil {
		return nil, err
	}
	var err error
	s.Username, err = username(s.Username)
	return s, err
}

// username is the user name of a registry, with its default. Basic authentication cuts at the first colon.
func username(text string) (string, error) {
	if strings.ContainsAny(text, ":\r\n") {
		return "", errors.New("username has a colon or more than one line")
	}
	return cmp.Or(text, defaultUsername), nil
}

func (s tokenServer) credentials(_ context.Context, token Token, _ func() time.Time) (Credentials, error) {
	return Credentials{Username: s.Username, Password: token.Value, Expires: token.Expires}, nil
}
