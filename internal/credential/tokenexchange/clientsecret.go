package tokenexchange

import (
	"fmt"
	"os"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
)

// clientSecret reads the client's secret, if there is one.
func (s *Source) clientSecret() (credential.Secret, error) {
	if s.ClientSecretFile == "" {
		return credential.Secret{}, nil
	}
	info, err := os.Stat(s.ClientSecretFile)
	if err != nil {
		return credential.Secret{}, fmt.Errorf("read the client's secret: %w", err)
	}
	if err := checkPrivate(s.ClientSecretFile, info); err != nil {
		return credential.Secret{}, fmt.Errorf("read the client's secret: %w", err)
	}
	secret, err := file.Read(s.ClientSecretFile)
	if err != nil {
		return credential.Secret{}, fmt.Errorf("read the client's secret: %w", err)
	}
	return secret, nil
}
