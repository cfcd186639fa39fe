package windowsregistry_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/credence-id/credence/internal/gmsa/windowsregistry"
	"github.com/credence-id/credence/internal/gmsa/windowsregistry/registrytest"
	"github.com/credence-id/credence/internal/securitycontext/docker"
)

// docks is a Docker that has these containers.
func docks(existing map[string][]string) windowsregistry.Containers {
	return func(context.Context) (map[string][]string, error) { return existing, nil }
}

func leftover(digit string) string { return "k8s-cred-spec-" + strings.Repeat(digit, 80) }

func write(t *testing.T, memory *registrytest.Memory, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := memory.Write(name, name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepAtStart(t *testing.T) {
	memory := registrytest.NewMemory()
	foreign := []string{"WebApp01", "k8s-cred-spec-", leftover("a") + "0", leftover("a")[1:], strings.ToUpper(leftover("e")), "k8s-cred-spec-" + strings.Repeat("g", 80)}
	write(t, memory, foreign...)
	write(t, memory, leftover("0"), leftover("1"), leftover("2"), leftover("3"))
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	removed, err := keeper.Sweep(t.Context(), docks(map[string][]string{
		"created, never started": {docker.SecurityOption(leftover("1"))},
		"stopped":                {"seccomp=x", "CREDENTIALSPEC=Registry://" + strings.ToUpper(leftover("2"))},
		"of another program":     {"credentialspec=file://WebApp01.json"},
		"plain":                  nil,
	}))
	if removed != 2 || err != nil {
		t.Errorf("sweep: %d, %v, want the two that no container has", removed, err)
	}
	want := map[string]string{leftover("1"): leftover("1"), leftover("2"): leftover("2")}
	for _, name := range foreign {
		want[name] = name
	}
	mustHave(t, memory, want)

	// A value from before the process is removed with its container, as any other.
	if err := keeper.Remove("stopped"); err != nil {
		t.Fatal(err)
	}
	delete(want, leftover("2"))
	mustHave(t, memory, want)
}

func TestSweepThatCannotKnowRemovesNothing(t *testing.T) {
	memory := registrytest.NewMemory()
	write(t, memory, leftover("0"))
	registry := &faulty{Memory: memory}
	keeper := windowsregistry.NewKeeper(registry, rand.Reader)
	noDocker := errors.New("docker is not there")
	if removed, err := keeper.Sweep(t.Context(), func(context.Context) (map[string][]string, error) {
		return map[string][]string{}, noDocker
	}); removed != 0 || !errors.Is(err, noDocker) {
		t.Errorf("without Docker: %d, %v", removed, err)
	}
	registry.before = broken("list")
	if removed, err := keeper.Sweep(t.Context(), docks(nil)); removed != 0 || err == nil {
		t.Errorf("without a list of values: %d, %v", removed, err)
	}
	mustHave(t, memory, map[string]string{leftover("0"): leftover("0")})
}

func TestSweepGoesOnAfterAFailure(t *testing.T) {
	memory := registrytest.NewMemory()
	registry := &faulty{Memory: memory}
	keeper := windowsregistry.NewKeeper(registry, rand.Reader)
	gone := created(t, keeper, "removed behind our back", spec)
	write(t, memory, leftover("0"), leftover("1"))
	registry.before = func(operation, name string) error {
		if operation == "remove" && name != leftover("1") {
			return fmt.Errorf("registry cannot remove %s", name)
		}
		return nil
	}
	removed, err := keeper.Sweep(t.Context(), docks(nil))
	if removed != 1 || err == nil || !strings.Contains(err.Error(), leftover("0")) || !strings.Contains(err.Error(), gone) {
		t.Errorf("sweep: %d, %v, want one value removed and two named", removed, err)
	}
	registry.before = nil
	if removed, err := keeper.Sweep(t.Context(), docks(nil)); removed != 2 || err != nil {
		t.Errorf("next sweep: %d, %v", removed, err)
	}
	mustHave(t, memory, nil)
}

func TestSweepSparesWhatIsCreatedMeanwhile(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	want := map[string]string{}

	t.Run("while Docker creates the container", func(t *testing.T) {
		if _, err := keeper.Create(spec, func(securityOpts []string) (string, error) {
			want[docker.ValueNames(securityOpts)[0]] = spec
			if removed, err := keeper.Sweep(t.Context(), docks(nil)); removed != 0 || err != nil {
				t.Errorf("sweep: %d, %v", removed, err)
			}
			return "slow", nil
		}); err != nil {
			t.Fatal(err)
		}
		mustHave(t, memory, want)
	})
	t.Run("after Docker has listed its containers", func(t *testing.T) {
		if removed, err := keeper.Sweep(t.Context(), func(context.Context) (map[string][]string, error) {
			existing := map[string][]string{"slow": nil}
			want[created(t, keeper, "quick", `{}`)] = `{}`
			return existing, nil
		}); removed != 0 || err != nil {
			t.Errorf("sweep: %d, %v", removed, err)
		}
		mustHave(t, memory, want)
	})
	t.Run("and takes it when the container has gone without us", func(t *testing.T) {
		if removed, err := keeper.Sweep(t.Context(), docks(map[string][]string{"slow": nil})); removed != 1 || err != nil {
			t.Errorf("sweep: %d, %v, want the value of the container that is gone", removed, err)
		}
		maps.DeleteFunc(want, func(_, contents string) bool { return contents == `{}` })
		mustHave(t, memory, want)
	})
}

// Sweeps run while containers come and go: no container that is there loses its value, and in the end none is left over.
func TestSweepsAmongContainers(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	var (
		mu       sync.Mutex
		existing = map[string][]string{} // Docker
		group    sync.WaitGroup
	)
	list := func(context.Context) (map[string][]string, error) {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(existing), nil
	}
	for i := range 8 {
		group.Go(func() {
			for round := range 32 {
				id, contents := fmt.Sprintf("%d-%d", i, round), fmt.Sprintf(`{"Name":"%d-%d"}`, i, round)
				var name string
				if _, err := keeper.Create(contents, func(securityOpts []string) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					existing[id], name = securityOpts, docker.ValueNames(securityOpts)[0]
					return id, nil
				}); err != nil {
					t.Error(err)
				}
				if got, found := memory.Read(name); !found || got != contents {
					t.Errorf("container %s has lost its value: %q, %v", id, got, found)
				}
				mu.Lock()
				delete(existing, id)
				mu.Unlock()
				if err := keeper.Remove(id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() {
		for range 64 {
			if _, err := keeper.Sweep(t.Context(), list); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	mustHave(t, memory, nil)
}
