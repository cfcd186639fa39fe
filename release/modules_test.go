package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRefused(t *testing.T) {
	text, err := os.ReadFile("../hack/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := parseRefused(string(text)); err != nil || len(list) < 10 {
		t.Errorf("the list of this repository: %d lines, %v", len(list), err)
	}
	for _, line := range []string{"a.example/b", "a.example/b v1.0.0", "a.example/b 1.0.0 reason", "a.example/b <1 reason", "allow . a.example/b <v1.0.0 reason", "allow . a.example/b v1.0.0"} {
		if list, err := parseRefused("# a comment\n\n" + line + "\n"); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: %+v, %v", line, list, err)
		}
	}
}

// put writes files, by path.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The go command itself lists the modules of a checkout, from a proxy in a folder.
func TestModules(t *testing.T) {
	const broken = "module m.example/broken\n\ngo 1.20\n"
	proxy, checkout := t.TempDir(), t.TempDir()
	versions := map[string]map[string]string{
		"m.example/broken": {"v1.0.0": broken, "v1.1.0": broken + "\nretract v1.0.0 // loses data\n", "v1.2.0": broken + "\nretract [v1.0.0, v1.1.0] // loses more\n"},
		"m.example/self":   {"v1.0.1": "module m.example/self\n\ngo 1.20\n\nretract [v1.0.0, v1.0.1] // published by accident\n"},
	}
	for path, of := range versions {
		for version, gomod := range of {
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			for name, content := range map[string]string{"go.mod": gomod, "x.go": "package x\n"} {
				file, err := w.Create(path + "@" + version + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := file.Write([]byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			at := path + "/@v/" + version
			put(t, proxy, map[string]string{at + ".mod": gomod, at + ".info": `{"Version":"` + version + `"}`, at + ".zip": archive.String()})
		}
	}
	put(t, proxy, map[string]string{"m.example/broken/@v/list": "v1.0.0\nv1.1.0\nv1.2.0\n", "m.example/self/@v/list": "v1.0.1\n"})
	cache := t.TempDir()
	put(t, checkout, map[string]string{
		"x.go":        "package x\n\nimport _ \"m.example/broken\"\n",
		"go.mod":      "module main.example\n\ngo 1.20\n\nrequire m.example/broken v1.0.0\n",
		"tool/x.go":   "package x\n\nimport (\n\t_ \"m.example/broken\"\n\t_ \"m.example/self\"\n)\n",
		"tool/go.mod": "module tool.example\n\ngo 1.20\n\nrequire (\n\tm.example/broken v1.1.0\n\tm.example/self v1.0.1\n)\n",
	})
	list := func(folder string, flags ...string) string {
		for _, arguments := range [][]string{{"mod", "tidy"}, append(append([]string{"list", "-m", "-json"}, flags...), "all")} {
			command := exec.Command("go", arguments...)
			command.Dir = filepath.Join(checkout, folder)
			command.Env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy), "GONOSUMDB=*", "GONOSUMCHECK=1", "GOFLAGS=-modcacherw", "GOMODCACHE="+cache)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			output, err := command.Output()
			if err != nil {
				t.Fatalf("go %v: %v\n%s", arguments, err, &stderr)
			}
			if arguments[0] == "list" {
				return string(output)
			}
		}
		return ""
	}
	both := list(".") + list("tool")
	for name, test := range map[string]struct {
		listed, refused string
		want            []string // the problems
	}{
		"stated in go.mod files": {both, "", []string{
			".: m.example/broken v1.0.0 is refused: retracted: loses data", "tool: m.example/self v1.0.1 is refused: retracted: published by accident"}},
		"looked up": {list("tool", "-retracted"), "", []string{
			"tool: m.example/broken v1.1.0 is refused: retracted: loses more", "tool: m.example/self v1.0.1 is refused: retracted: published by accident"}},
		"refused": {both, "m.example/broken <v1.2.0 CVE-1: bad\nm.example/self v1.0.1 CVE-2: worse\nm.example/other all never\n", []string{
			".: m.example/broken v1.0.0 is refused: CVE-1: bad; retracted: loses data", "tool: m.example/broken v1.1.0 is refused: CVE-1: bad",
			"tool: m.example/self v1.0.1 is refused: CVE-2: worse; retracted: published by accident"}},
		"allowed": {both, "allow . m.example/broken v1.0.0 a reason\nallow tool m.example/self v1.0.1 a reason\n", nil},
		"allowed elsewhere": {both, "allow tool m.example/broken v1.0.0 a reason\nallow tool m.example/self v1.0.1 a reason\n", []string{
			".: m.example/broken v1.0.0 is refused: retracted: loses data", "the list allows m.example/broken v1.0.0 in tool, which does not have it: remove the line"}},
		"not looked up": {`{"Path":"a","Main":true,"Dir":"` + checkout + `"}{"Path":"b","Version":"v1.0.0","Error":{"Err":"no answer"}}`, "", []string{".: b v1.0.0: no answer"}},
		"nothing":       {"", "", []string{"no modules on standard input: want the output of go list -m -json all"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused, err := parseRefused(test.refused)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := checkModules(strings.NewReader(test.listed), refused, checkout); err != nil {
				got = err.Error()
			}
			if want := strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
