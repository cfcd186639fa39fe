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
)

// clients are the programs that people run on their own machines.
var clients = []string{"credence", "credence-credential"}

// makeArchives builds an archive of the client programs for each platform into out, with their SBOMs, the packaged chart, and
// checksums.txt.
func makeArchives(ctx context.Context, progress io.Writer, source, out string, platforms []string) error {
	scratch, err := os.MkdirTemp("", "credence-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
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
	for i, each := range platforms {
		platform, err := parsePlatform(each)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "building for %s\n", each)
		programs, err := build(ctx, source, filepath.Join(scratch, platform.OS+platform.Architecture), platform, clients...)
		if err != nil {
			return err
		}
		of, err := readLicenses(ctx, source, programs)
		if err != nil {
			return err
		}
		at, err := programs[0].commitTime()
		if err != nil {
			return err
		}
		entries := []entry{{name: "LICENSE", mode: 0o644, data: license}}
		for _, p := range programs {
			content, err := os.ReadFile(p.file)
			if err != nil {
				return err
			}
			document, err := sbom(p, of, at)
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: filepath.Base(p.file), mode: 0o755, data: content}, entry{name: p.name + ".cdx.json", mode: 0o644, data: document})
		}
		pack, extension := tarGzip, ".tar.gz"
		if platform.OS == "windows" {
			pack, extension = zipped, ".zip"
		}
		archive, err := pack(entries, at)
		if err != nil {
			return err
		}
		called := fmt.Sprintf("credence_%s_%s_%s%s", programs[0].version(), platform.OS, platform.Architecture, extension)
		if err := write(called, archive); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		called, chart, err := packChart(source, programs[0], at)
		if err != nil {
			return err
		}
		if err := write(called, chart); err != nil {
			return err
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return writeFile(out, "checksums.txt", []byte(strings.Join(sums, "")))
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
