package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const patience = 5 * time.Minute

// follow runs a watch until the test ends. The channel delivers its calls.
func follow(t *testing.T, interval time.Duration, paths ...string) <-chan struct{} {
	t.Helper()
	calls, done := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		Run(ctx, interval, func() {
			select {
			case calls <- struct{}{}:
			case <-ctx.Done():
			}
		}, paths...)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return calls
}

func wantCall(t *testing.T, calls <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(patience):
		t.Fatalf("no call %s", why)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryKindOfChange(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "deep", "file")
	calls := follow(t, 10*time.Millisecond, path, filepath.Join(folder, "missing"))
	wantCall(t, calls, "at the start")
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"the file comes, with its folder", func() error {
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, []byte("1"), 0o600)
		}},
		{"other contents in place", func() error { return os.WriteFile(path, []byte("22"), 0o600) }},
		{"another mode", func() error { return os.Chmod(path, 0o640) }},
		{"replaced by a rename", func() error {
			if err := os.WriteFile(path+".new", []byte("33"), 0o640); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
		{"a link to another folder", func() error {
			if err := os.Rename(filepath.Dir(path), filepath.Join(folder, "v1")); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(folder, "v2"), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, "v2", "file"), []byte("444"), 0o600); err != nil {
				return err
			}
			return os.Symlink("v2", filepath.Join(folder, "deep"))
		}},
		{"removed", func() error { return os.Remove(path) }},
	} {
		before := stat([]string{path})
		must(t, step.change())
		if equal(before, stat([]string{path})) {
			t.Errorf("%s: the change is not seen", step.name)
		}
		wantCall(t, calls, "after: "+step.name)
	}
}

func TestCalledWithoutAChange(t *testing.T) {
	calls := follow(t, time.Millisecond, filepath.Join(t.TempDir(), "missing"))
	for range 3 {
		wantCall(t, calls, "though looks go on")
	}
}
