package windowsregistry_test

import (
	"crypto/rand"
	"errors"
	"testing"

	"golang.org/x/sys/windows/registry"

	"github.com/credence-id/credence/internal/gmsa/windowsregistry"
	"github.com/credence-id/credence/internal/gmsa/windowsregistry/registrytest"
)

func TestWindowsRegistry(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) (windowsregistry.Registry, registrytest.Read) {
		path := `SOFTWARE\credence-test-` + rand.Text()
		t.Cleanup(func() {
			if err := registry.DeleteKey(registry.CURRENT_USER, path); err != nil && !errors.Is(err, registry.ErrNotExist) {
				t.Errorf("remove the key of the test: %v", err)
			}
		})
		return windowsregistry.NewWindowsRegistryAt(registry.CURRENT_USER, path), func(t *testing.T, name string) (string, bool) {
			return readString(t, path, name)
		}
	})
}

// readString reads as Docker does: a value of type REG_SZ.
func readString(t *testing.T, path, name string) (string, bool) {
	t.Helper()
	key, err := registry.OpenKey(registry.CURRENT_USER, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if errors.Is(err, registry.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	contents, kind, err := key.GetStringValue(name)
	if errors.Is(err, registry.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	if kind != registry.SZ {
		t.Errorf("value %s is of type %d, want REG_SZ", name, kind)
	}
	return contents, true
}
