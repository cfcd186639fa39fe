package credentialspecs_test

import (
	"testing"

	"github.com/credence-id/credence/internal/node/credentialspecs"
	"github.com/credence-id/credence/internal/node/credentialspecs/registrytest"
)

func TestMemoryRegistry(t *testing.T) {
	registrytest.Run(t, func(*testing.T) (credentialspecs.Registry, registrytest.Read) {
		memory := registrytest.NewMemory()
		return memory, func(_ *testing.T, name string) (string, bool) { return memory.Read(name) }
	})
}
