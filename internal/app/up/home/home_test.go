//go:build unix

package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

func newDir(t *testing.T) Dir {
	t.Helper()
	dir := testkit.Need(Resolve(filepath.Join(t.TempDir(), "state")))(t)
	return dir
}

func prepared(t *testing.T) Dir {
	t.Helper()
	dir := newDir(t)
	testkit.Must(t, dir.Prepare())
	return dir
}

func TestPrepareMakesADirectoryPrivate(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	testkit.Must(t, os.Mkdir(string(dir), 0o755))
	for range 2 {
		testkit.Must(t, dir.Prepare())
	}
	if info, err := os.Stat(string(dir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v (%v), want 0700", info.Mode(), err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	if _, err := Resolve(""); err == nil {
		t.Error("an empty path is accepted")
	}
	dir, err := Resolve("a/../b")
	if err != nil || !filepath.IsAbs(string(dir)) || filepath.Base(string(dir)) != "b" {
		t.Errorf("a/../b is %q (%v)", dir, err)
	}
}

func TestATooLongPathIsNamed(t *testing.T) {
	t.Parallel()
	dir := Dir(filepath.Join(t.TempDir(), strings.Repeat("x", 300)))
	if err := dir.Prepare(); err == nil || !strings.Contains(err.Error(), "file name too long") {
		t.Errorf("a name of 300 characters: %v", err)
	}
}

func TestConfigureKeepsPortAndIssuer(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	first := testkit.Need(dir.Configure(0, ""))(t)
	want := Config{Version: 1, Port: DefaultPort, Issuer: "https://127.0.0.1:17445/workload-identity"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if dir.Exists() {
		t.Error("asking for a config has bound the directory to it")
	}
	testkit.Must(t, dir.SaveConfig(first))
	for _, port := range []int{0, DefaultPort} {
		if again, err := dir.Configure(port, ""); err != nil || again != first {
			t.Errorf("port %d: %+v, %v", port, again, err)
		}
	}
	if _, err := dir.Configure(0, InCluster); err == nil || !strings.Contains(err.Error(), "--storage embedded") {
		t.Errorf("another storage: %v", err)
	}
	if err := Check(0, "disk"); err == nil || !strings.Contains(err.Error(), "cluster or embedded") {
		t.Errorf("a storage that does not exist: %v", err)
	}
	if _, err := dir.Configure(8000, ""); err == nil || !strings.Contains(err.Error(), "--port 17443") {
		t.Errorf("another port: %v", err)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	for port, want := range map[int]string{
		LowestPort: "", HighestPort: "",
		80000: "--port 80000 must be 1024 to 65525: it is the first of 11 ports", 65526: "must be 1024 to 65525", 1023: "must be 1024 to 65525", -1: "must be 1024 to 65525",
	} {
		config, err := NewConfig(port)
		if want == "" && (err != nil || config.Port != port) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("port %d: %v, want %q", port, err, want)
		}
	}
}

// The documents have as many ports as an installation takes.
func TestDocumentsCountPorts(t *testing.T) {
	t.Parallel()
	number := map[int]string{10: "ten", 11: "eleven", 12: "twelve"}[PortSpan]
	for file, want := range map[string]string{
		"README.md":                    "takes %s consecutive ports",
		"docs/decisions/0012-ports.md": "takes %s consecutive ports",
		"docs/reference/flags.md":      "First of %s ports",
	} {
		text, err := os.ReadFile(filepath.Join("../../../..", file))
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(want, number)) {
			t.Errorf("%s: %v, want %s", file, err, fmt.Sprintf(want, number))
		}
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "unexpected end",
		`{"version":2,"port":17443}`: "version 2",
		`{"version":1,"port":1}`:     "--port 1",
		`{"version":1,"port":17443,"issuer":"https://evil.example"}`: `issuer "https://evil.example"`,
		strings.Repeat(" ", int(maxConfig)+1):                        "65537 bytes",
	} {
		dir := prepared(t)
		testkit.Must(t, WriteFile(dir.configFile(), []byte(text), 0o600))
		_, err := dir.Configure(0, "")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir.configFile()) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	dir := prepared(t)
	testkit.Must(t, WriteFile(dir.EndpointsFile(), []byte(`{"components":[{"name":"x","pid":-1}]}`), 0o600))
	if _, _, err := dir.LoadEndpoints(); err == nil || !strings.Contains(err.Error(), dir.EndpointsFile()) {
		t.Errorf("a process id that means every process: %v", err)
	}
}

func TestEndpointsComeBackAsWritten(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	if _, found, err := dir.LoadEndpoints(); found || err != nil {
		t.Fatalf("endpoints before the first start: found %v, %v", found, err)
	}
	config, err := NewConfig(DefaultPort)
	testkit.Must(t, err)
	want := NewEndpoints(dir, config)
	want.Components = append(want.Components, Component{Name: "devcluster", PID: 42, LogFile: dir.Log("devcluster")})
	testkit.Must(t, dir.SaveEndpoints(want))
	got, found, err := dir.LoadEndpoints()
	if diff := cmp.Diff(want, got); diff != "" || !found || err != nil {
		t.Errorf("endpoints: found %v, %v (-want +got):\n%s", found, err, diff)
	}
	if c, found := got.Component("devcluster"); !found || c.PID != 42 {
		t.Errorf("devcluster is %+v, found %v", c, found)
	}
	if _, found := got.Component("webhook"); found {
		t.Error("a component that does not run is found")
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"port":17443,"issuer":"https://127.0.0.1:17445/workload-identity"}`))
	f.Add([]byte(`{"components":[{"name":"devcluster","pid":1}]}`))
	f.Add([]byte(`{"components":[{"pid":99999999999999999999}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if config, err := parseConfig(data); err == nil {
			want, err := NewConfig(config.Port)
			if want.Storage = config.Storage; err != nil || config != want {
				t.Errorf("config %+v is accepted", config)
			}
		}
		if endpoints, err := parseEndpoints(data); err == nil {
			for _, c := range endpoints.Components {
				if c.PID <= 1 {
					t.Errorf("component %+v is accepted", c)
				}
			}
		}
	})
}

func TestTheLockHasOneHolder(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	if _, held, err := dir.Holder(); held || err != nil {
		t.Fatalf("held before anyone took it: %v, %v", held, err)
	}
	lock := testkit.Need(dir.Acquire())(t)
	if pid, held, err := dir.Holder(); pid != os.Getpid() || !held || err != nil {
		t.Errorf("holder is %d, %v, %v", pid, held, err)
	}
	var inUse *HeldError
	if _, err := dir.Acquire(); !errors.As(err, &inUse) || inUse.PID != os.Getpid() || !strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) {
		t.Errorf("taking it once more: %v", err)
	}
	testkit.Must(t, lock.Release())
	if _, held, err := dir.Holder(); held || err != nil {
		t.Errorf("held after its release: %v, %v", held, err)
	}
	again := testkit.Need(dir.Acquire())(t)
	testkit.Must(t, again.Release())
}

func TestCheckSpaceNamesWhatIsFree(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	testkit.Expect(t, dir.CheckSpace(1), "one byte")
	err := dir.CheckSpace(1 << 62)
	if err == nil || !strings.Contains(err.Error(), string(dir)+" has ") || !strings.Contains(err.Error(), "MiB of free disk space") {
		t.Errorf("more than any disk has: %v", err)
	}
}

func TestWriteFileReplacesAsAWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "file")
	for _, c := range []struct {
		text string
		mode fs.FileMode
	}{{"one", 0o644}, {"two", 0o600}} {
		testkit.Must(t, WriteFile(path, []byte(c.text), c.mode))
		content, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(content) != c.text || info.Mode().Perm() != c.mode {
			t.Errorf("file is %q, %v (%v, %v)", content, info.Mode(), err, statErr)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v (%v)", entries, err)
	}
}

func TestKeepLeavesWhatIsTheSame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	inode := func() os.FileInfo {
		info := testkit.Need(os.Stat(path))(t)
		return info
	}
	keep := func(text string, mode fs.FileMode) {
		testkit.Must(t, Keep(path, []byte(text), mode))
	}
	keep("one", 0o600)
	first := inode()
	keep("one", 0o600)
	if !os.SameFile(first, inode()) {
		t.Error("a file with the same contents was replaced")
	}
	for text, mode := range map[string]fs.FileMode{"two": 0o600, "one": 0o644} {
		before := inode()
		keep(text, mode)
		if os.SameFile(before, inode()) {
			t.Errorf("the file was not replaced by %q, %v", text, mode)
		}
	}
}
