package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"credence:dev":              "docker.io/library/credence:dev",
		"credence":                  "docker.io/library/credence:latest",
		"registry.example/team/a:1": "registry.example/team/a:1",
		"localhost:5000/a:1":        "localhost:5000/a:1",
	} {
		if got, err := FullName(name); err != nil || got != want {
			t.Errorf("FullName(%q) is %q (%v), want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", "Credence", "a b", "a:", "a@sha256:" + strings.Repeat("0", 64)} {
		if got, err := FullName(name); err == nil {
			t.Errorf("FullName(%q) is %q, want an error", name, got)
		}
	}
}

// The written image can be read by following digests from index.json to the program.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("not really a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := Write(out, "docker.io/library/a:1", path, "sleep", "inf"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same program gives two images")
	}
	files := untar(t, &first)
	var index struct{ Manifests []descriptor }
	decode(t, files["index.json"], &index)
	if got := index.Manifests[0].Annotations[nameAnnotation]; got != "docker.io/library/a:1" {
		t.Errorf("the image's name is %q", got)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, content(t, files, index.Manifests[0]), &manifest)
	var config struct {
		Config struct{ Entrypoint []string }
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, content(t, files, manifest.Config), &config)
	if diff := cmp.Diff([]string{"/program", "sleep", "inf"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entry point (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{manifest.Layers[0].Digest}, config.Rootfs.DiffIDs); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	layer := tar.NewReader(bytes.NewReader(content(t, files, manifest.Layers[0])))
	header, err := layer.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "program" || header.Mode != 0o755 {
		t.Errorf("the layer has %s with mode %o", header.Name, header.Mode)
	}
	if got, err := io.ReadAll(layer); err != nil || string(got) != "not really a program" {
		t.Errorf("the program is %q (%v)", got, err)
	}
}

func TestCheckProgram(t *testing.T) {
	folder := t.TempDir()
	source, static, script := filepath.Join(folder, "main.go"), filepath.Join(folder, "static"), filepath.Join(folder, "script")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	build := func(to string, env ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", "build", "-o", to, source)
		command.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOOS=linux"}, env...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	build(static)
	if err := CheckProgram(static); err != nil {
		t.Errorf("a static program: %v", err)
	}
	for path, want := range map[string]string{script: "not a Linux program", filepath.Join(folder, "none"): "no such file"} {
		if err := CheckProgram(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if dynamic := "/bin/ls"; CheckProgram(dynamic) == nil {
		t.Skipf("no program that is linked dynamically is here: %s is static", dynamic)
	} else if err := CheckProgram(dynamic); !strings.Contains(err.Error(), "link it statically") {
		t.Errorf("%s: %v", dynamic, err)
	}
}

func untar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// content is what a descriptor stands for, and really has its digest and size.
func content(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	found := files[blob(d)]
	sum := sha256.Sum256(found)
	if d.Digest != "sha256:"+hex.EncodeToString(sum[:]) || d.Size != int64(len(found)) {
		t.Fatalf("%s of %d bytes is not what is stored there: %d bytes", d.Digest, d.Size, len(found))
	}
	return found
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
