package volumes_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/test/testkit"
)

// writeInto makes this program one that writes into the volume at the path until it is killed.
const writeInto = "CREDENCE_WRITE_INTO"

// mountAt makes this program one that mounts memory at the path, and prints how often it was warned of swap.
const mountAt = "CREDENCE_MOUNT_AT"

func TestMain(m *testing.M) {
	if path := os.Getenv(writeInto); path != "" {
		for n := 0; ; n++ {
			if err := volumes.Write(volumes.Tmpfs{}, path, generation(n), nil); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(n)
		}
	}
	if path := os.Getenv(mountAt); path != "" {
		swapped := 0
		err := volumes.Tmpfs{Swapped: func() { swapped++ }}.Mount(path)
		fmt.Println(swapped, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// generation is files that have the same number in them; each second time, one more.
func generation(n int) map[string][]byte {
	files := map[string][]byte{"token": fmt.Append(nil, n), "config": fmt.Append(nil, n)}
	if n%2 == 0 {
		files["kubeconfig"] = fmt.Append(nil, n)
	}
	return files
}

// made is a volume in memory.
func made(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	path := filepath.Join(t.TempDir(), "mount")
	testkit.Must(t, volumes.Make(volumes.Tmpfs{}, path))
	t.Cleanup(func() {
		testkit.Expect(t, volumes.Remove(volumes.Tmpfs{}, path))
	})
	return path
}

func names(t *testing.T, path string) string {
	t.Helper()
	entries := testkit.Need(os.ReadDir(path))(t)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

// The modes are those by which users of containers read files; files that are gone leave nothing.
func TestWrite(t *testing.T) {
	path := made(t)
	group := int64(4711)
	for _, test := range []struct {
		files map[string][]byte
		group *int64
		mode  os.FileMode
		gid   uint32
		want  string
	}{
		{map[string][]byte{"token": []byte("a"), "config": []byte("b")}, nil, 0o644, 0, "config token"},
		{map[string][]byte{"token": []byte("c"), "kubeconfig": []byte("d")}, &group, 0o440, 4711, "kubeconfig token"},
	} {
		testkit.Must(t, volumes.Write(volumes.Tmpfs{}, path, test.files, test.group))
		for name, want := range test.files {
			got, err := volumes.Read(path, name)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %q %v, want %q", name, got, err, want)
			}
			info, err := os.Stat(filepath.Join(path, name))
			if err != nil || info.Mode() != test.mode || info.Sys().(*syscall.Stat_t).Gid != test.gid {
				t.Errorf("%s: %v %v, want mode %v and group %d", name, info, err, test.mode, test.gid)
			}
		}
		// One hidden folder, the link to it, and the links of the files.
		got := names(t, path)
		if !strings.HasSuffix(got, " "+test.want) || strings.Count(got, " ") != 1+len(test.files) {
			t.Errorf("the volume has %s, want %s", got, test.want)
		}
	}
}

// Nothing is written into other folders than mounted memory, and a volume is not made over anything.
func TestRefusals(t *testing.T) {
	path := made(t)
	folder := t.TempDir()
	if err := volumes.Write(volumes.Tmpfs{}, folder, generation(0), nil); err == nil || !strings.Contains(err.Error(), "nothing is mounted") {
		t.Errorf("write into a folder: %v", err)
	}
	if got := names(t, folder); got != "" {
		t.Errorf("the folder has %s", got)
	}
	file := filepath.Join(folder, "file")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(folder, "link")
	testkit.Must(t, os.Symlink(path, link))
	for _, place := range []string{file, link, folder, filepath.Join(folder, "missing", "mount")} {
		if err := volumes.Make(volumes.Tmpfs{}, place); err == nil {
			t.Errorf("made at %s", place)
		}
	}
	proc := filepath.Join(t.TempDir(), "proc")
	testkit.Must(t, os.Mkdir(proc, 0o700))
	testkit.Must(t, syscall.Mount("proc", proc, "proc", 0, ""))
	t.Cleanup(func() { _ = syscall.Unmount(proc, 0) })
	if err := volumes.Remove(volumes.Tmpfs{}, proc); err == nil || !strings.Contains(err.Error(), "something else than memory") {
		t.Errorf("remove what another has mounted: %v", err)
	}
}

// Memory that the kernel may swap out is mounted, and noticed. A kernel refuses to keep it out of swap for a user namespace, as those before
// 6.4 do for all.
func TestSwap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	program, err := os.Executable()
	testkit.Must(t, err)
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	mount := exec.CommandContext(t.Context(), program)
	mount.Env = append(os.Environ(), mountAt+"="+t.TempDir())
	mount.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: own, GidMappings: own}
	output, err := mount.Output()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this machine gives no user namespaces: %v", err)
	}
	if err != nil || string(output) != "1 <nil>\n" {
		t.Errorf("in a user namespace: %q, %v", output, err)
	}
}

// A volume that is full keeps the files that it has, and takes new ones once there is room.
func TestFull(t *testing.T) {
	path := made(t)
	testkit.Must(t, volumes.Write(volumes.Tmpfs{}, path, generation(1), nil))
	large := map[string][]byte{"token": bytes.Repeat([]byte("x"), 2<<20)}
	if err := volumes.Write(volumes.Tmpfs{}, path, large, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write more than there is room for: %v", err)
	}
	if got, err := volumes.Read(path, "token"); string(got) != "1" || err != nil {
		t.Errorf("the token is %q, %v", got, err)
	}
	testkit.Expect(t, volumes.Write(volumes.Tmpfs{}, path, generation(2), nil))
}

// A volume is removed while a process has a file of it open, also one that was mounted twice; again, nothing happens.
func TestRemove(t *testing.T) {
	path := made(t)
	testkit.Must(t, volumes.Write(volumes.Tmpfs{}, path, generation(0), nil))
	open := testkit.Need(os.Open(filepath.Join(path, "token")))(t)
	defer open.Close()
	testkit.Must(t, (volumes.Tmpfs{}).Mount(path))
	for range 2 {
		testkit.Must(t, volumes.Remove(volumes.Tmpfs{}, path))
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is left: %v", err)
		}
	}
}

// A writer that is killed at any time leaves all files of one generation, and the next one sweeps up after it.
func TestKilledWriter(t *testing.T) {
	path := made(t)
	program := testkit.Need(os.Executable())(t)
	for kill := range 40 {
		writer := exec.CommandContext(t.Context(), program)
		writer.Env = append(os.Environ(), writeInto+"="+path)
		output, err := writer.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, writer.Start())
		// After another number of lines each time.
		testkit.Must(t, testkit.Err(output.Read(make([]byte, 1+kill*7))))
		testkit.Must(t, writer.Process.Kill())
		_ = writer.Wait()
		current, err := filepath.EvalSymlinks(filepath.Join(path, "..data"))
		testkit.Must(t, err)
		token, err := os.ReadFile(filepath.Join(current, "token"))
		testkit.Must(t, err)
		config, err := os.ReadFile(filepath.Join(current, "config"))
		if err != nil || !bytes.Equal(token, config) || len(token) == 0 {
			t.Errorf("files of two generations: %q and %q, %v", token, config, err)
		}
	}
	testkit.Must(t, volumes.Write(volumes.Tmpfs{}, path, generation(1), nil))
	if got := names(t, path); strings.Count(got, " ") != 3 || !strings.HasSuffix(got, " config token") {
		t.Errorf("the volume has %s", got)
	}
}

func TestMemoryOfLinux(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	conforms(t, volumes.Tmpfs{})
}
