// Package https sends the form of a token exchange over the network. In go a form with its client's credentials, and the file of the
// authorities that the server is verified with; out comes the answer as it is. It is apart from the exchange so that a program that only reads
// stored credentials starts without it.
package https

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/credence-id/credence/internal/credential/file"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
	"github.com/credence-id/credence/internal/tokenendpoint/network"
)

// Poster is the way over the network.
type Poster struct{}

// Post implements tokenexchange.Poster.
func (Poster) Post(ctx context.Context, form tokenexchange.Form) (status int, body []byte, err error) {
	var authorities []byte
	if form.CAFile != "" {
		if authorities, err = file.Content(form.CAFile, file.MaxAuthorities); err != nil {
			return 0, nil, fmt.Errorf("read the authorities: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, form.Endpoint, strings.NewReader(form.Values.Encode()))
	if err != nil {
		return 0, nil, errors.New("the token endpoint is not a URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if form.User != "" {
		// RFC 6749 section 2.3.1: both are encoded as in a form first.
		request.SetBasicAuth(url.QueryEscape(form.User), url.QueryEscape(form.Password.Reveal()))
	}
	return network.Send(request, authorities)
}
