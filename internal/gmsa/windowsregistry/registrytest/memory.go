package registrytest

import (
	"errors"
	"strings"
	"sync"
	"unicode/utf16"
)

// Memory behaves as the key of the Windows registry does, without Windows: names are found whatever their case is and keep the
// one that they were written with, contents are UTF-16 without NUL, and the key need not be there.
type Memory struct {
	mu     sync.Mutex
	values map[string]value // by name in lower case
}

type value struct {
	name     string
	contents []uint16
}

// NewMemory makes a registry without values.
func NewMemory() *Memory { return &Memory{values: map[string]value{}} }

// Write implements windowsregistry.Registry.
func (m *Memory) Write(name, contents string) error {
	if strings.ContainsRune(name+contents, 0) {
		return errors.New("set registry value: a string with a NUL character")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := value{name: name, contents: utf16.Encode([]rune(contents))}
	if old, there := m.values[strings.ToLower(name)]; there {
		v.name = old.name
	}
	m.values[strings.ToLower(name)] = v
	return nil
}

// Remove implements windowsregistry.Registry.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, strings.ToLower(name))
	return nil
}

// Names implements windowsregistry.Registry.
func (m *Memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, v := range m.values {
		names = append(names, v.name)
	}
	return names, nil
}

// Read is what Docker finds under this name.
func (m *Memory) Read(name string) (contents string, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, found := m.values[strings.ToLower(name)]
	return string(utf16.Decode(v.contents)), found
}
