package windowsregistry

import (
	"context"
	"errors"
	"fmt"

	"github.com/credence-id/credence/internal/securitycontext/docker"
)

// Containers lists all containers that Docker has, in whatever state: those that were created but never started, and those
// that are stopped and may be started again, too. It returns the security options of each (HostConfig.SecurityOpt) by ID.
type Containers func(ctx context.Context) (map[string][]string, error)

// Sweep removes the values of containers that are no longer there, and remembers those of containers that are, so that Remove
// knows them. Values that are not named as ours stay, whatever they are. It can be called at any time, and is called at start,
// before any container is created or removed; after an error it is called again. It returns how many values it removed.
//
// The order matters: the keeper's own values are noted before Docker lists its containers, so that a container which is created in
// between does not count as gone.
func (k *Keeper) Sweep(ctx context.Context, containers Containers) (removed int, err error) {
	before := k.owners()
	existing, err := containers(ctx)
	if err != nil {
		return 0, fmt.Errorf("list containers, to find registry values without one: %w", err)
	}
	for id, securityOpts := range existing {
		for _, name := range docker.ValueNames(securityOpts) {
			k.own(id, name)
		}
	}
	names, err := k.registry.Names()
	if err != nil {
		return 0, fmt.Errorf("list registry values of credential specs: %w", err)
	}
	var errs []error
	for _, name := range names {
		if !docker.IsValueName(name) || k.inUse(name, before, existing) {
			continue
		}
		if err := k.registry.Remove(name); err != nil {
			errs = append(errs, fmt.Errorf("remove registry value %s, which no container needs: %w", name, err))
			continue
		}
		removed++
	}
	if len(errs) == 0 {
		for id := range before {
			if _, there := existing[id]; !there {
				k.forget(id)
			}
		}
	}
	return removed, errors.Join(errs...)
}

// owners are the IDs of the containers that own values now.
func (k *Keeper) owners() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ids := make(map[string]bool, len(k.owned))
	for id := range k.owned {
		ids[id] = true
	}
	return ids
}

// inUse reports whether a value belongs to a container that is being created, that exists, or that was created after before
// was noted.
func (k *Keeper) inUse(name string, before map[string]bool, existing map[string][]string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.creating[name] {
		return true
	}
	for id, names := range k.owned {
		for _, owned := range names {
			if _, there := existing[id]; owned == name && (there || !before[id]) {
				return true
			}
		}
	}
	return false
}
