package windowsregistry

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows/registry"
)

// location is where Docker reads what a security option `credentialspec=registry://…` names.
const location = `SOFTWARE\Microsoft\Windows NT\CurrentVersion\Virtualization\Containers\CredentialSpecs`

// A 32-bit program would be shown another SOFTWARE key than Docker, which is a 64-bit one.
const view = registry.WOW64_64KEY

// WindowsRegistry is the key of this machine. Each call opens it with no more rights than it needs, and closes it.
type WindowsRegistry struct {
	root registry.Key
	path string
}

// NewWindowsRegistry is the key in which Docker on this machine looks.
func NewWindowsRegistry() WindowsRegistry {
	return WindowsRegistry{root: registry.LOCAL_MACHINE, path: location}
}

// Write makes the key where it is missing, as on a node where Docker has not had a credential spec yet: Docker looks nowhere
// else, and by inherited rights only administrators can write to it.
func (r WindowsRegistry) Write(name, contents string) error {
	key, _, err := registry.CreateKey(r.root, r.path, registry.SET_VALUE|view)
	if err != nil {
		return fmt.Errorf("create or open registry key %q (needs administrator): %w", r.path, err)
	}
	defer key.Close()
	if err := key.SetStringValue(name, contents); err != nil {
		return fmt.Errorf("set value %q of registry key %q: %w", name, r.path, err)
	}
	return nil
}

// Remove is content with a key or value that is not there.
func (r WindowsRegistry) Remove(name string) error {
	key, err := registry.OpenKey(r.root, r.path, registry.SET_VALUE|view)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open registry key %q for writing (needs administrator): %w", r.path, err)
	}
	defer key.Close()
	if err := key.DeleteValue(name); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return fmt.Errorf("delete value %q of registry key %q: %w", name, r.path, err)
	}
	return nil
}

// Names opens the key to read: the right to write does not include that to list.
func (r WindowsRegistry) Names() ([]string, error) {
	key, err := registry.OpenKey(r.root, r.path, registry.QUERY_VALUE|view)
	if errors.Is(err, registry.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open registry key %q for reading: %w", r.path, err)
	}
	defer key.Close()
	names, err := key.ReadValueNames(0)
	if err != nil {
		return nil, fmt.Errorf("list values of registry key %q: %w", r.path, err)
	}
	return names, nil
}
