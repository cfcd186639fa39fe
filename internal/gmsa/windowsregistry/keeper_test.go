package windowsregistry_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/credence-id/credence/internal/gmsa/windowsregistry"
	"github.com/credence-id/credence/internal/gmsa/windowsregistry/registrytest"
	"github.com/credence-id/credence/internal/securitycontext/docker"
)

const spec = `{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{"MachineAccountName":"WebApp01"}}`

// faulty is a registry whose calls fail where before returns an error.
type faulty struct {
	*registrytest.Memory
	before func(operation, name string) error
}

func (f *faulty) Write(name, contents string) error {
	if err := f.check("write", name); err != nil {
		return err
	}
	return f.Memory.Write(name, contents)
}

func (f *faulty) Remove(name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	return f.Memory.Remove(name)
}

func (f *faulty) Names() ([]string, error) {
	if err := f.check("list", ""); err != nil {
		return nil, err
	}
	return f.Memory.Names()
}

func (f *faulty) check(operation, name string) error {
	if f.before == nil {
		return nil
	}
	return f.before(operation, name)
}

func broken(operation string) func(string, string) error {
	return func(got, _ string) error {
		if got == operation {
			return fmt.Errorf("registry cannot %s", operation)
		}
		return nil
	}
}

// created creates a container, and returns the name of its value.
func created(t *testing.T, keeper *windowsregistry.Keeper, id, contents string) string {
	t.Helper()
	var name string
	got, err := keeper.Create(contents, func(securityOpts []string) (string, error) {
		if len(securityOpts) != 1 {
			t.Fatalf("security options %q, want one", securityOpts)
		}
		name = strings.TrimPrefix(securityOpts[0], "credentialspec=registry://")
		return id, nil
	})
	if err != nil || got != id {
		t.Fatalf("create: %q, %v", got, err)
	}
	if !docker.IsValueName(name) {
		t.Fatalf("value name %q is not one of ours", name)
	}
	return name
}

func mustHave(t *testing.T, memory *registrytest.Memory, want map[string]string) {
	t.Helper()
	names, err := memory.Names()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want) {
		t.Errorf("the registry has %d values %q, want %d", len(names), names, len(want))
	}
	for name, contents := range want {
		if got, found := memory.Read(name); !found || got != contents {
			t.Errorf("value %s is %q, %v, want %q", name, got, found, contents)
		}
	}
}

func TestValueLivesAsLongAsTheContainer(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	if _, err := keeper.Create(spec, func(securityOpts []string) (string, error) {
		// Docker can look as soon as it is called.
		mustHave(t, memory, map[string]string{docker.ValueNames(securityOpts)[0]: spec})
		return "first", nil
	}); err != nil {
		t.Fatal(err)
	}
	second := created(t, keeper, "second", `{}`)
	if err := keeper.Remove("first"); err != nil {
		t.Fatal(err)
	}
	mustHave(t, memory, map[string]string{second: `{}`})
	for _, id := range []string{"first", "second", "second", "never there"} {
		if err := keeper.Remove(id); err != nil {
			t.Errorf("remove %s: %v", id, err)
		}
	}
	mustHave(t, memory, nil)
}

func TestContainerWithoutCredentialSpec(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, strings.NewReader(""))
	id, err := keeper.Create("", func(securityOpts []string) (string, error) {
		if len(securityOpts) > 0 {
			t.Errorf("security options %q, want none", securityOpts)
		}
		return "plain", nil
	})
	if id != "plain" || err != nil {
		t.Errorf("create: %q, %v", id, err)
	}
	mustHave(t, memory, nil)
}

func TestFailedCreationLeavesNothing(t *testing.T) {
	noDocker := errors.New("docker is not there")
	refuses := func([]string) (string, error) { return "", noDocker }
	for name, test := range map[string]struct {
		before func(string, string) error
		create func([]string) (string, error)
		want   string
	}{
		"docker refuses":       {create: refuses, want: "docker is not there"},
		"docker returns no ID": {create: func([]string) (string, error) { return "", nil }, want: "without an ID"},
		"registry can't write": {before: broken("write"), want: "registry cannot write"},
		"docker is half done":  {create: func([]string) (string, error) { return "half", noDocker }, want: "docker is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := registrytest.NewMemory()
			keeper := windowsregistry.NewKeeper(&faulty{memory, test.before}, rand.Reader)
			id, err := keeper.Create(spec, func(opts []string) (string, error) {
				if test.create == nil {
					t.Error("docker was called without a value")
					return "unexpected", nil
				}
				return test.create(opts)
			})
			if id != "" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("create: %q, %v, want an error with %q", id, err, test.want)
			}
			mustHave(t, memory, nil)
		})
	}
}

func TestPanicWhileCreatingLeavesNothing(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	func() {
		defer func() { _ = recover() }()
		_, _ = keeper.Create(spec, func([]string) (string, error) { panic("docker client") })
		t.Error("the panic was swallowed")
	}()
	mustHave(t, memory, nil)
}

func TestFailedCleanupOfACreationIsToldAndSwept(t *testing.T) {
	memory := registrytest.NewMemory()
	registry := &faulty{memory, broken("remove")}
	keeper := windowsregistry.NewKeeper(registry, rand.Reader)
	noDocker := errors.New("docker is not there")
	_, err := keeper.Create(spec, func([]string) (string, error) { return "", noDocker })
	if !errors.Is(err, noDocker) || !strings.Contains(err.Error(), "registry cannot remove") {
		t.Errorf("create: %v, want both errors", err)
	}
	registry.before = nil
	if removed, err := keeper.Sweep(t.Context(), docks(nil)); removed != 1 || err != nil {
		t.Errorf("sweep: %d, %v, want the value of the container that never was", removed, err)
	}
	mustHave(t, memory, nil)
}

func TestFailedRemovalIsTriedAgain(t *testing.T) {
	memory := registrytest.NewMemory()
	registry := &faulty{memory, broken("remove")}
	keeper := windowsregistry.NewKeeper(registry, rand.Reader)
	name := created(t, keeper, "web", spec)
	for range 2 {
		err := keeper.Remove("web")
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "container web") {
			t.Fatalf("remove: %v, want an error with value and container", err)
		}
	}
	mustHave(t, memory, map[string]string{name: spec})
	registry.before = nil
	if err := keeper.Remove("web"); err != nil {
		t.Fatal(err)
	}
	mustHave(t, memory, nil)
}

func TestContentsThatTheRegistryWouldChange(t *testing.T) {
	for name, contents := range map[string]string{"NUL": "{\"secret\x00\":1}", "not UTF-8": "{\"secret\xff\":1}"} {
		memory := registrytest.NewMemory()
		keeper := windowsregistry.NewKeeper(memory, rand.Reader)
		_, err := keeper.Create(contents, func([]string) (string, error) { t.Error("created"); return "web", nil })
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error that does not repeat the credential spec", name, err)
		}
		mustHave(t, memory, nil)
	}
}

func TestRandomnessThatRunsOutOrRepeats(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, bytes.NewReader(make([]byte, 2*40+39)))
	name := created(t, keeper, "first", spec)
	for _, want := range []string{"repeated itself", io.ErrUnexpectedEOF.Error()} {
		_, err := keeper.Create(`{"other":1}`, func([]string) (string, error) { t.Error("created"); return "second", nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("create: %v, want %q", err, want)
		}
	}
	mustHave(t, memory, map[string]string{name: spec})
}

// While the registry or Docker hangs for one container, others are created and removed.
func TestNobodyWaitsForAnother(t *testing.T) {
	memory := registrytest.NewMemory()
	writing, proceed := make(chan struct{}), make(chan struct{})
	var writes atomic.Int32
	registry := &faulty{memory, func(operation, _ string) error {
		if operation == "write" && writes.Add(1) == 1 {
			close(writing)
			<-proceed
		}
		return nil
	}}
	keeper := windowsregistry.NewKeeper(registry, rand.Reader)
	var group sync.WaitGroup
	group.Go(func() { created(t, keeper, "slow", spec) })
	<-writing
	created(t, keeper, "quick", `{}`)
	if err := keeper.Remove("quick"); err != nil {
		t.Error(err)
	}
	if _, err := keeper.Sweep(t.Context(), docks(nil)); err != nil {
		t.Error(err)
	}
	close(proceed)
	group.Wait()
	if err := keeper.Remove("slow"); err != nil {
		t.Error(err)
	}
	mustHave(t, memory, nil)
}

func TestEachContainerHasItsOwnCredentialSpec(t *testing.T) {
	memory := registrytest.NewMemory()
	keeper := windowsregistry.NewKeeper(memory, rand.Reader)
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			id, contents := fmt.Sprintf("container-%d", i), fmt.Sprintf(`{"Name":"account-%d"}`, i)
			for round := range 8 {
				name := created(t, keeper, fmt.Sprintf("%s-%d", id, round), contents)
				if got, found := memory.Read(name); !found || got != contents {
					t.Errorf("%s would run with %q, %v, want %q", id, got, found, contents)
				}
				if round%2 == 0 {
					if err := keeper.Remove(fmt.Sprintf("%s-%d", id, round)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	if names, _ := memory.Names(); len(names) != 32*4 {
		t.Errorf("%d values are left, want one for each of the %d containers", len(names), 32*4)
	}
	if removed, err := keeper.Sweep(t.Context(), docks(nil)); removed != 32*4 || err != nil {
		t.Errorf("sweep: %d, %v", removed, err)
	}
	mustHave(t, memory, nil)
}
