package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The archives of each operating system have its kind, and the same files; TestPublishedRelease builds programs for one of them.
func TestPackPrograms(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	for _, c := range []struct{ os, program, archive string }{
		{"linux", "credence", "credence_v1.2.3_linux_arm64.tar.gz"},
		{"darwin", "credence", "credence_v1.2.3_darwin_arm64.tar.gz"},
		{"windows", "credence.exe", "credence_v1.2.3_windows_arm64.zip"},
	} {
		t.Run(c.os, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), c.program)
			if err := os.WriteFile(file, []byte("a program"), 0o700); err != nil {
				t.Fatal(err)
			}
			programs := []program{{name: "credence", file: file, info: &buildinfo.BuildInfo{Main: debug.Module{Path: ours, Version: "v1.2.3"}}}}
			to := v1.Platform{OS: c.os, Architecture: "arm64"}
			pack := func() []byte {
				archive, err := packPrograms(t.Context(), checkout, programs, to, []byte("a license"), at)
				if err != nil {
					t.Fatal(err)
				}
				return archive
			}
			archive := pack()
			if again := pack(); !bytes.Equal(archive, again) {
				t.Error("two archives of the same programs differ")
			}
			if called := archiveName("credence", "v1.2.3", to); called != c.archive {
				t.Errorf("the archive is called %s, want %s", called, c.archive)
			}
			var found map[string][]byte
			if c.os == "windows" {
				found = filesOfZip(t, archive, c.program, at)
			} else {
				compressed, err := gzip.NewReader(bytes.NewReader(archive))
				if err != nil {
					t.Fatal(err)
				}
				found = files(t, compressed)
			}
			want := []string{"LICENSE", c.program, "credence.cdx.json"}
			slices.Sort(want)
			if have := slices.Sorted(maps.Keys(found)); !slices.Equal(have, want) {
				t.Errorf("it has the files %q, want %q", have, want)
			}
			if string(found[c.program]) != "a program" || string(found["LICENSE"]) != "a license" || !bytes.Contains(found["credence.cdx.json"], []byte("CycloneDX")) {
				t.Errorf("its files are %q", found)
			}
		})
	}
}

// filesOfZip returns the files of a zip archive, by name. All are of the time at, and the program alone is one that can be run.
func filesOfZip(t *testing.T, archive []byte, program string, at time.Time) map[string][]byte {
	t.Helper()
	read, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, each := range read.File {
		mode := os.FileMode(0o644)
		if each.Name == program {
			mode = 0o755
		}
		if each.Mode() != mode || !each.Modified.Equal(at) || each.Method != zip.Deflate {
			t.Errorf("%s has the mode %s, the time %s and the method %d", each.Name, each.Mode(), each.Modified, each.Method)
		}
		content, err := each.Open()
		if err != nil {
			t.Fatal(err)
		}
		if found[each.Name], err = io.ReadAll(content); err != nil { // that compares the checksum, too
			t.Fatal(err)
		}
		content.Close()
	}
	return found
}
