package windowsregistry

import "golang.org/x/sys/windows/registry"

// NewWindowsRegistryAt is for tests: a key of the user's own needs no administrator, and is not read by Docker.
func NewWindowsRegistryAt(root registry.Key, path string) WindowsRegistry {
	return WindowsRegistry{root: root, path: path}
}
