//go:build unix

package cache_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/test/testkit"
)

func lock(t *testing.T, folder *cache.Folder, name cache.Name) *cache.Lock {
	t.Helper()
	lock := testkit.Need(folder.Lock(t.Context(), name, cache.Wait{}))(t)
	t.Cleanup(lock.Release)
	return lock
}

func write(t *testing.T, folder *cache.Folder, name cache.Name, content string) {
	t.Helper()
	lock := lock(t, folder, name)
	testkit.Must(t, lock.Write([]byte(content)))
	lock.Release()
}

// The leftover of a writer that was killed before the rename changes nothing and blocks nothing.
func TestLeftoverOfAKilledWriter(t *testing.T) {
	folder := open(t)
	write(t, folder, name("a"), "old")
	leftover := filepath.Join(folder.Path(), string(name("a"))+".tmp")
	testkit.Must(t, os.WriteFile(leftover, []byte("new, but h"), 0o600))
	if data, err := folder.Read(name("a")); err != nil || string(data) != "old" {
		t.Fatalf("read %q, %v", data, err)
	}
	write(t, folder, name("a"), "new")
	if data, err := folder.Read(name("a")); err != nil || string(data) != "new" {
		t.Fatalf("read %q, %v", data, err)
	}
	if _, err := os.Lstat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover: %v", err)
	}
}

// The content that replaces a longer one, or a reservation, has nothing of it at its end.
func TestReservedRoomIsNotContent(t *testing.T) {
	folder := open(t)
	lock := lock(t, folder, name("a"))
	for _, content := range []string{strings.Repeat("long", 1000), "short"} {
		testkit.Must(t, lock.Reserve())
		if info, err := os.Stat(filepath.Join(folder.Path(), string(name("a"))+".tmp")); err != nil || info.Size() < 64<<10 {
			t.Fatalf("reserved: %v, %v", info, err)
		}
		testkit.Must(t, lock.Write([]byte(content)))
		if data, err := folder.Read(name("a")); err != nil || string(data) != content {
			t.Errorf("read %d bytes, %v, want %d", len(data), err, len(content))
		}
	}
	testkit.Must(t, lock.Reserve())
	lock.Release()
	if entries, err := os.ReadDir(folder.Path()); err != nil || len(entries) != 2 {
		t.Errorf("after the lock the folder holds %v, %v; want the content and the lock", entries, err)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	folder := open(t)
	write(t, folder, name("a"), "content")
	folder.Mark(name("a"), "a client")
	testkit.Must(t, lock(t, folder, name("a")).Remove())
	if entries, err := os.ReadDir(folder.Path()); err != nil || len(entries) != 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	testkit.Expect(t, lock(t, folder, name("a")).Remove(), "remove what is not there")
}

func TestMarks(t *testing.T) {
	folder := open(t)
	if folder.Marked(name("a"), "1 2") != 0 {
		t.Error("marked before anything was")
	}
	folder.Mark(name("a"), "1 2")
	folder.Mark(name("a"), "two\nlines")
	folder.Mark(name("a"), "again")
	folder.Mark(name("a"), "again")
	for mark, want := range map[string]int{"1 2": 1, "again": 2, "1": 0, "1 2 ": 0, "lines": 0, "two": 0} {
		if got := folder.Marked(name("a"), mark); got != want {
			t.Errorf("marked %q: %v, want %v", mark, got, want)
		}
	}
	if folder.Marked(name("b"), "1 2") != 0 {
		t.Error("the mark is of another name too")
	}
	lock(t, folder, name("a")).Unmark()
	if folder.Marked(name("a"), "1 2") != 0 {
		t.Error("marked after marks were removed")
	}
}

func TestMarksAreBounded(t *testing.T) {
	folder := open(t)
	mark := func(i int) string { return fmt.Sprintf("mark %d of many", i) }
	const many = 5000
	for i := range many {
		folder.Mark(name("a"), mark(i))
		if folder.Marked(name("a"), mark(i)) != 1 {
			t.Fatalf("mark %d is not there", i)
		}
	}
	info, err := os.Stat(filepath.Join(folder.Path(), string(name("a"))+".seen"))
	if err != nil || info.Size() > 65<<10 {
		t.Errorf("marks take %d bytes, %v", info.Size(), err)
	}
	if folder.Marked(name("a"), mark(many-1000)) != 1 || folder.Marked(name("a"), mark(0)) != 0 {
		t.Error("not the oldest marks were forgotten")
	}
}
