// Package file is the source of credentials that another program keeps in a file, such as the projected token of a service
// account. In go a path; out comes the current token, with its own expiry. It reads the file anew
// for each request, stores nothing, never writes, and never verifies the token.
package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// MaxAuthorities is more than a file of certificates takes, in bytes, those of a whole system included.
const MaxAuthorities = 16 << 20

// maxSize is more than a token ever takes that a server would read in a header.
const maxSize = 256 << 10

// Source is a file with one token.
type Source struct {
	// Path of the file. Links are followed: projected tokens are links.
	Path string
	// Now is the clock; required.
	Now func() time.Time
}

// Key implements credential.Source: nothing is stored of a credential that is in a file already.
func (*Source) Key() map[string]string { return nil }

// Obtain implements credential.Source.
func (s *Source) Obtain(ctx context.Context, _ credential.Request) (credential.Credential, json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return credential.Credential{}, nil, fmt.Errorf("read the token in a file: %w", err)
	}
	token, err := Read(s.Path)
	if err != nil {
		return credential.Credential{}, nil, fmt.Errorf("read the token in a file: %w", err)
	}
	if strings.IndexFunc(token.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return credential.Credential{}, nil, fmt.Errorf("read the token in a file: %s holds something else than one token", s.Path)
	}
	claims, _ := credential.Unverified(token)
	if now := s.Now(); !claims.Expires.IsZero() && !now.Before(claims.Expires) {
		return credential.Credential{}, nil, fmt.Errorf("the token in %s expired at %s, and now is %s: whatever renews the file has stopped, or the clock is wrong",
			s.Path, claims.Expires.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return credential.Credential{Token: token, Expires: claims.Expires}, nil, nil
}

// Read returns the token in a file, without the white space around it.
func Read(path string) (credential.Secret, error) {
	if path == "" {
		return credential.Secret{}, errors.New("no file is given")
	}
	data, err := Content(path, maxSize)
	if err != nil {
		return credential.Secret{}, err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return credential.Secret{}, fmt.Errorf("%s is empty", path)
	}
	return credential.NewSecret(text), nil
}

// Content returns the content of a regular file of at most so many bytes. Other files are refused: to open a pipe is to wait for its
// writer, whatever deadline the caller has.
func Content(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}
