// Package registrytest holds what every registry of credential specs keeps, as tests that run on any of them, and one that
// needs no Windows. In go functions that make empty registries, out come test results. It is imported by tests only.
package registrytest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/gmsa/windowsregistry"
)

// Read reads a value as Docker does.
type Read func(t *testing.T, name string) (contents string, found bool)

// Run tests what every registry keeps. open makes one whose key does not exist yet.
func Run(t *testing.T, open func(t *testing.T) (windowsregistry.Registry, Read)) {
	t.Run("a missing key has no values, and none to remove", func(t *testing.T) {
		registry, _ := open(t)
		mustList(t, registry)
		mustRemove(t, registry, "WebApp01")
		mustList(t, registry)
	})
	t.Run("a written value is read, character by character", func(t *testing.T) {
		registry, read := open(t)
		for name, contents := range map[string]string{
			"plain":        `{"CmsPlugins":["ActiveDirectory"]}`,
			"empty":        "",
			"quoted":       `{"PluginInput":"{\"credentialArn\":\"a\\b\"}"}`,
			"beyond ASCII": "{\"Name\":\"wéb\u2028𝕏\"}",
			"lines":        "{\r\n}\n",
			"percent":      `{"Name":"%SystemRoot%"}`,
			"large":        strings.Repeat("x", 64<<10),
		} {
			mustWrite(t, registry, name, contents)
			if got, found := read(t, name); !found || got != contents {
				t.Errorf("%s: read %.40q (%d bytes), %v, want %.40q (%d bytes)", name, got, len(got), found, contents, len(contents))
			}
		}
	})
	t.Run("a value that is written again is replaced", func(t *testing.T) {
		registry, read := open(t)
		mustWrite(t, registry, "WebApp01", "a longer one")
		mustWrite(t, registry, "WebApp01", "short")
		mustHold(t, registry, read, map[string]string{"WebApp01": "short"})
	})
	t.Run("names keep their case, and are found whatever it is", func(t *testing.T) {
		registry, read := open(t)
		mustWrite(t, registry, "WebApp01", "one")
		mustList(t, registry, "WebApp01")
		mustWrite(t, registry, "WEBAPP01", "two")
		if got, _ := read(t, "webApp01"); got != "two" {
			t.Errorf("read %q, want what was written last", got)
		}
		mustRemove(t, registry, "webapp01")
		mustList(t, registry)
	})
	t.Run("removing removes one value, and can be done again", func(t *testing.T) {
		registry, read := open(t)
		mustWrite(t, registry, "WebApp01", "one")
		mustWrite(t, registry, "WebApp02", "two")
		mustRemove(t, registry, "WebApp01")
		mustRemove(t, registry, "WebApp01")
		mustHold(t, registry, read, map[string]string{"WebApp02": "two"})
		if _, found := read(t, "WebApp01"); found {
			t.Error("a removed value is still read")
		}
	})
	t.Run("a string that the registry would cut off is refused", func(t *testing.T) {
		registry, _ := open(t)
		if err := registry.Write("WebApp01", "{\x00}"); err == nil {
			t.Error("contents with a NUL were written")
		}
		if err := registry.Write("Web\x00App01", "{}"); err == nil {
			t.Error("a name with a NUL was written")
		}
		mustList(t, registry)
	})
	t.Run("many can use it at once", func(t *testing.T) { concurrently(t, open) })
}

func concurrently(t *testing.T, open func(t *testing.T) (windowsregistry.Registry, Read)) {
	registry, read := open(t)
	mustWrite(t, registry, "stays", "there")
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			name := fmt.Sprintf("value-%d", i)
			for range 8 {
				if err := registry.Write(name, name); err != nil {
					t.Error(err)
				}
				// The list while others write is undefined: Windows counts through the values that there are.
				if _, err := registry.Names(); err != nil {
					t.Error(err)
				}
				if got, found := read(t, name); !found || got != name {
					t.Errorf("%s: read %q, %v", name, got, found)
				}
				if err := registry.Remove(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	mustHold(t, registry, read, map[string]string{"stays": "there"})
}

func mustWrite(t *testing.T, registry windowsregistry.Registry, name, contents string) {
	t.Helper()
	if err := registry.Write(name, contents); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}

func mustRemove(t *testing.T, registry windowsregistry.Registry, name string) {
	t.Helper()
	if err := registry.Remove(name); err != nil {
		t.Fatalf("remove %s: %v", name, err)
	}
}

func mustList(t *testing.T, registry windowsregistry.Registry, want ...string) {
	t.Helper()
	names, err := registry.Names()
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	slices.Sort(names)
	slices.Sort(want)
	if len(names)+len(want) > 0 && !slices.Equal(names, want) {
		t.Fatalf("names (-want +got):\n%s", cmp.Diff(want, names))
	}
}

func mustHold(t *testing.T, registry windowsregistry.Registry, read Read, want map[string]string) {
	t.Helper()
	var names []string
	for name, contents := range want {
		names = append(names, name)
		if got, found := read(t, name); !found || got != contents {
			t.Errorf("%s: read %q, %v, want %q", name, got, found, contents)
		}
	}
	mustList(t, registry, names...)
}
