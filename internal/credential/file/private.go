package file

import (
	"fmt"
	"os"

	"github.com/credence-id/credence/internal/credential"
)

// ReadPrivate is Read for the secret of a client, and refuses a file that others can read or write.
func ReadPrivate(path string) (credential.Secret, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = checkPrivate(path, info)
	}
	if err != nil {
		return credential.Secret{}, fmt.Errorf("read the secret of the client: %w", err)
	}
	secret, err := Read(path)
	if err != nil {
		return credential.Secret{}, fmt.Errorf("read the secret of the client: %w", err)
	}
	return secret, nil
}
