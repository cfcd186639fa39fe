package importer_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

const (
	root      = "../.."
	module    = "github.com/credence-id/credence"
	published = "2026-01-01T00:00:00Z"
)

// modules are those that are released, by their folders.
var modules = map[string]string{
	".": module, "api": module + "/api", "execcredential": module + "/execcredential",
	"execcredential/clientgo": module + "/execcredential/clientgo",
}

// proxy is a folder with a release of each module, and what the go command is run with to take them from there.
type proxy struct {
	version string
	env     []string
}

// newProxy makes a proxy of the checkout. The version has the digest of all files in it: the module cache takes what has the same version
// for the same.
func newProxy(t *testing.T) proxy {
	t.Helper()
	files := map[string][]string{}
	digest := sha256.New()
	for _, name := range strings.Split(strings.TrimSuffix(command(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if folder := moduleOf(t, path.Dir(name)); modules[folder] != "" {
			files[folder] = append(files[folder], name)
			fmt.Fprintf(digest, "%q %x\n", name, sha256.Sum256(read(t, name)))
		}
	}
	dir := t.TempDir()
	p := proxy{version: "v0.0.0-20260101000000-" + hex.EncodeToString(digest.Sum(nil))[:12]}
	for folder, modulePath := range modules {
		to := filepath.Join(dir, filepath.FromSlash(modulePath), "@v", p.version)
		goMod := command(t, root, nil, "hack/release.sh", p.version, folder)
		write(t, filepath.Join(filepath.Dir(to), "list"), p.version+"\n")
		write(t, to+".mod", goMod)
		write(t, to+".info", fmt.Sprintf(`{"Version":%q,"Time":%q}`, p.version, published))
		write(t, to+".zip", archive(t, modulePath+"@"+p.version, folder, goMod, files[folder]))
	}
	cache := strings.TrimSpace(command(t, root, nil, "go", "env", "GOMODCACHE"))
	before := strings.TrimSpace(command(t, root, nil, "go", "env", "GOPROXY"))
	p.env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(dir)+","+before, "GONOSUMDB="+module, "GOWORK=off",
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -modcacherw")
	t.Cleanup(func() {
		for _, modulePath := range modules {
			left, _ := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(modulePath), "@v", p.version+".*"))
			for _, name := range append(left, filepath.Join(cache, filepath.FromSlash(modulePath)+"@"+p.version)) {
				testkit.Expect(t, os.RemoveAll(name))
			}
		}
	})
	return p
}

// moduleOf returns the folder of the module that a folder of the checkout is in.
func moduleOf(t *testing.T, folder string) string {
	for {
		if _, err := os.Stat(filepath.Join(root, folder, "go.mod")); err == nil {
			return folder
		}
		if folder == "." {
			t.Fatal("the checkout has no go.mod")
		}
		folder = path.Dir(folder)
	}
}

// archive is the zip file of a module, as https://go.dev/ref/mod#zip-files describes it.
func archive(t *testing.T, prefix, folder, goMod string, files []string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range files {
		contents := read(t, name)
		name = strings.TrimPrefix(name, folder+"/")
		if name == "go.mod" {
			contents = []byte(goMod)
		}
		file := testkit.Need(w.Create(prefix + "/" + name))(t)
		testkit.Must(t, testkit.Err(file.Write(contents)))
	}
	testkit.Must(t, w.Close())
	return out.String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	contents := testkit.Need(os.ReadFile(filepath.Join(root, name)))(t)
	return contents
}

func write(t *testing.T, name, contents string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	testkit.Must(t, os.WriteFile(name, []byte(contents), 0o644))
}

// command runs a program, and one that fails twice more: the go command does not repeat a download.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	for try := 1; ; try++ {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = dir, env
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err == nil {
			return string(out)
		}
		if try == 3 {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
		}
		time.Sleep(time.Duration(try) * 5 * time.Second)
	}
}
