package windowsregistry_test

import (
	"testing"

	"github.com/credence-id/credence/internal/gmsa/windowsregistry"
	"github.com/credence-id/credence/internal/gmsa/windowsregistry/registrytest"
)

func TestMemoryRegistry(t *testing.T) {
	registrytest.Run(t, func(*testing.T) (windowsregistry.Registry, registrytest.Read) {
		memory := registrytest.NewMemory()
		return memory, func(_ *testing.T, name string) (string, bool) { return memory.Read(name) }
	})
}
