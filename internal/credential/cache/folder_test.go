//go:build unix

package cache_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/test/testkit"
)

func open(t *testing.T) *cache.Folder {
	t.Helper()
	folder := testkit.Need(cache.Open(filepath.Join(t.TempDir(), "made", "here")))(t)
	t.Cleanup(func() { _ = folder.Close() })
	return folder
}

func name(text string) cache.Name { return cache.NameOf(map[string]string{"source": text}) }

// printf '%s' '{"audience":"<a&b>","source":"oidc"}' | sha256sum
func TestNameIsTheSumOfTheCanonicalKey(t *testing.T) {
	const want = "9933e982beaafd4e"
	got := cache.NameOf(map[string]string{"source": "oidc", "audience": "<a&b>"})
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("name %s, want %s…", got, want)
	}
	testkit.Expect(t, testkit.Err(cache.ParseName(string(got))))
	for _, bad := range []string{"", "../x", string(got)[1:], strings.ToUpper(string(got)), string(got) + ".tmp"} {
		if _, err := cache.ParseName(bad); err == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}

func TestFolderIsMadeForThisUserAlone(t *testing.T) {
	folder := open(t)
	for _, path := range []string{folder.Path(), filepath.Dir(folder.Path())} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}
}

func TestFolderThatOthersCanUseIsRefused(t *testing.T) {
	cases := []struct {
		name string
		make func(path string) error
		want string
	}{
		{"others write", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) }, "chmod go="},
		{"group writes", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)) }, "0770"},
		{"others read", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) }, "0755"},
		{"a link", func(path string) error {
			return errors.Join(os.Mkdir(path+".real", 0o700), os.Symlink(path+".real", path))
		}, "a symbolic link"},
		{"a dangling link", func(path string) error { return os.Symlink(path+".gone", path) }, "a symbolic link"},
		{"a file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "a regular file"},
	}
	if os.Geteuid() == 0 {
		cases = append(cases, struct {
			name string
			make func(path string) error
			want string
		}{"of another user", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 65534, -1)) }, "belongs to uid 65534"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			testkit.Must(t, c.make(path))
			_, err := cache.Open(path)
			if !errors.Is(err, cache.ErrUnsafe) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v, want ErrUnsafe with %q", err, c.want)
			}
		})
	}
}

// The opened folder stays in use: a folder that is put in its place is not written to.
func TestFolderThatIsReplacedIsNotFollowed(t *testing.T) {
	folder := open(t)
	testkit.Must(t, os.Rename(folder.Path(), folder.Path()+".old"))
	testkit.Must(t, os.Mkdir(folder.Path(), 0o777))
	write(t, folder, name("a"), "content")
	if entries, err := os.ReadDir(folder.Path()); err != nil || len(entries) != 0 {
		t.Errorf("the folder in its place holds %v, %v", entries, err)
	}
	if data, err := folder.Read(name("a")); err != nil || string(data) != "content" {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestForeignFilesAreNotRead(t *testing.T) {
	cases := map[string]func(path string) error{
		"link": func(path string) error {
			return errors.Join(os.WriteFile(path+".target", []byte("x"), 0o600), os.Symlink(filepath.Base(path)+".target", path))
		},
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"open": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o644))
		},
		"too large": func(path string) error { return os.WriteFile(path, make([]byte, 4<<20+1), 0o600) },
	}
	if os.Geteuid() == 0 {
		cases["of another user"] = func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chown(path, 65534, -1))
		}
	}
	for what, put := range cases {
		t.Run(what, func(t *testing.T) {
			folder := open(t)
			path := filepath.Join(folder.Path(), string(name("a")))
			testkit.Must(t, put(path))
			if _, err := folder.Read(name("a")); !errors.Is(err, cache.ErrForeign) {
				t.Fatalf("read: %v, want ErrForeign", err)
			}
			lock := lock(t, folder, name("a"))
			err := lock.Write([]byte("mine"))
			if what == "folder" {
				if err == nil {
					t.Error("a folder was replaced by a file")
				}
				return
			}
			testkit.Must(t, err)
			if data, err := folder.Read(name("a")); err != nil || string(data) != "mine" {
				t.Errorf("after it was replaced: %q, %v", data, err)
			}
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("after it was replaced: %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestNamesAreOfWhatIsKeptOnly(t *testing.T) {
	folder := open(t)
	for _, n := range []string{"b", "a"} {
		write(t, folder, name(n), n)
		folder.Mark(name(n), "a client")
	}
	for _, file := range []string{"README", string(name("a")) + ".tmp", string(name("killed")) + ".tmp", string(name("nothing")) + ".lock"} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder.Path(), file), nil, 0o600))
	}
	want := []cache.Name{name("a"), name("b"), name("killed")}
	slices.Sort(want)
	got := testkit.Need(folder.Names())(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if _, err := cache.OpenExisting(folder.Path() + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open a folder that does not exist: %v", err)
	}
}
