package windowsregistry

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/credence-id/credence/internal/securitycontext/docker"
)

// Keeper writes a value for each container with a credential spec, and removes it with the container. It is safe for
// concurrent use: no lock is held while the registry or Docker is at work. Its memory is that of the process; Sweep gives it
// back what was there before, from Docker, and is called before anything else.
type Keeper struct {
	registry Registry
	random   io.Reader

	mu sync.Mutex
	// creating holds the values of containers that have no ID yet.
	creating map[string]bool
	// owned holds the values of each container, by its ID.
	owned map[string][]string
}

// NewKeeper makes a Keeper that draws names from random, which must be safe for concurrent use and secure: crypto/rand.Reader.
func NewKeeper(registry Registry, random io.Reader) *Keeper {
	return &Keeper{registry: registry, random: random, creating: map[string]bool{}, owned: map[string][]string{}}
}

// Create creates a container whose credential spec is contents: it writes the value, and calls create with the elements of
// HostConfig.SecurityOpt that refer to it, nil if contents is empty. create returns Docker's ID of the container, by which it
// is removed later. If create fails, or panics, the value is removed at once; if that fails too, the error includes it, and the next
// Sweep removes it.
func (k *Keeper) Create(contents string, create func(securityOpts []string) (id string, err error)) (id string, err error) {
	if contents == "" {
		return create(nil)
	}
	if err := checkContents(contents); err != nil {
		return "", err
	}
	name, err := k.reserve()
	if err != nil {
		return "", err
	}
	kept := false
	defer func() {
		if kept {
			return
		}
		if removeErr := k.registry.Remove(name); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove registry value %s of a container that was not created (the next sweep tries again): %w", name, removeErr))
		}
		k.release(name)
	}()
	if err := k.registry.Write(name, contents); err != nil {
		return "", fmt.Errorf("write the credential spec of a container to registry value %s: %w", name, err)
	}
	id, err = create([]string{docker.SecurityOption(name)})
	if err == nil && id == "" {
		err = errors.New("a container with a credential spec was created without an ID: its registry value could not be removed with it")
	}
	if err != nil {
		return "", err
	}
	kept = true
	k.own(id, name)
	return id, nil
}

// Remove removes the value of a container, after Docker has removed the container. A missing value is not an error. After
// an error the container does not count as removed: try again.
func (k *Keeper) Remove(id string) error {
	for _, name := range k.valuesOf(id) {
		if err := k.registry.Remove(name); err != nil {
			return fmt.Errorf("remove registry value %s of container %s (remove the container again): %w", name, id, err)
		}
	}
	k.forget(id)
	return nil
}

// checkContents refuses what the registry would store as something else: a value ends at a NUL, and is UTF-16.
func checkContents(contents string) error {
	switch {
	case strings.ContainsRune(contents, 0):
		return errors.New("the credential spec has a NUL character, where the registry would end it: create it anew from its GMSACredentialSpec")
	case !utf8.ValidString(contents):
		return errors.New("the credential spec is not UTF-8, so that the registry would change it: create it anew from its GMSACredentialSpec")
	}
	return nil
}

// reserve makes a name, and marks it so that no sweep takes its value for a leftover.
func (k *Keeper) reserve() (string, error) {
	name, err := docker.NewValueName(k.random)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.creating[name] || k.isOwned(name) {
		return "", errors.New("the source of randomness has repeated itself: two containers would share a registry value, and so an identity")
	}
	k.creating[name] = true
	return name, nil
}

func (k *Keeper) release(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.creating, name)
}

func (k *Keeper) own(id, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.owned[id], name) {
		k.owned[id] = append(k.owned[id], name)
	}
	delete(k.creating, name)
}

func (k *Keeper) valuesOf(id string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.owned[id])
}

func (k *Keeper) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.owned, id)
}

// isOwned is called with the lock held.
func (k *Keeper) isOwned(name string) bool {
	for _, names := range k.owned {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}
