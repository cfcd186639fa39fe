package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A parcel is the programs of one archive for each platform.
type parcel struct {
	// name is what names of the archives begin with.
	name     string
	programs []string
	// os is the only operating system of the programs; empty: all.
	os string
}

var parcels = []parcel{
	// Programs that people run on their own machines.
	{name: "credence", programs: []string{"credence", "credence-credential"}},
	// The program that kubelets run.
	{name: "credence-image-credentials", programs: []string{"credence-image-credentials"}, os: "linux"},
}

// makeArchives builds the archives of all parcels for each platform into out, with SBOMs of their programs, the packaged chart, and
// checksums.txt. Without a version, all of it has that of the commit.
func makeArchives(ctx context.Context, progress io.Writer, source, version, out string, platforms []string) error {
	scratch, err := os.MkdirTemp("", "credence-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if source, err = tagged(ctx, source, version, scratch); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return err
	}
	var sums []string
	write := func(called string, archive []byte) error {
		fmt.Fprintf(progress, "%s\t%.1f MB\n", called, float64(len(archive))/1e6)
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), called))
		return writeFile(out, called, archive)
	}
	var chart bool
	for _, each := range platforms {
		platform, err := parsePlatform(each)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "building for %s\n", each)
		for _, b := range parcels {
			if b.os != "" && b.os != platform.OS {
				continue
			}
			programs, err := build(ctx, source, filepath.Join(scratch, platform.OS+platform.Architecture), platform, b.programs...)
			if err != nil {
				return err
			}
			at, err := programs[0].commitTime()
			if err != nil {
				return err
			}
			called, archive, err := packPrograms(ctx, source, b.name, programs, platform, license, at)
			if err != nil {
				return err
			}
			if err := write(called, archive); err != nil {
				return err
			}
			if chart {
				continue
			}
			if called, archive, err = packChart(source, programs[0], at); err != nil {
				return err
			}
			if err := write(called, archive); err != nil {
				return err
			}
			chart = true
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return writeFile(out, "checksums.txt", []byte(strings.Join(sums, "")))
}

// packPrograms makes the archive of a parcel for a platform.
func packPrograms(ctx context.Context, source, name string, programs []program, platform v1.Platform, license []byte, at time.Time) (called string, archive []byte, err error) {
	of, err := readLicenses(ctx, source, programs)
	if err != nil {
		return "", nil, err
	}
	entries := []entry{{name: "LICENSE", mode: 0o644, data: license}}
	for _, p := range programs {
		content, err := os.ReadFile(p.file)
		if err != nil {
			return "", nil, err
		}
		document, err := sbom(p, of, at)
		if err != nil {
			return "", nil, err
		}
		entries = append(entries, entry{name: filepath.Base(p.file), mode: 0o755, data: content}, entry{name: p.name + ".cdx.json", mode: 0o644, data: document})
	}
	pack, extension := tarGzip, ".tar.gz"
	if platform.OS == "windows" {
		pack, extension = zipped, ".zip"
	}
	archive, err = pack(entries, at)
	return fmt.Sprintf("%s_%s_%s_%s%s", name, programs[0].version(), platform.OS, platform.Architecture, extension), archive, err
}

func tarGzip(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	if err := writeTar(compressed, at, entries); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		file, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		content, _, err := e.open()
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(file, content)
		content.Close()
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
