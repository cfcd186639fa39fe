package discovery

import (
	"errors"

	"github.com/credence-id/credence/internal/discovery"
)

// readiness reports the server ready once documents are loaded, and stays so whatever its source does.
func readiness(documents *discovery.Handler) func() error {
	return func() error {
		if !documents.Loaded() {
			return errors.New("no documents are loaded yet")
		}
		return nil
	}
}
