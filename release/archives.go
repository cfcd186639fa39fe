package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// makeArchives builds the archives of all parcels for each platform into out, and returns one of the programs.
func makeArchives(ctx context.Context, progress io.Writer, source, scratch, out string, platforms []string) (first program, err error) {
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return program{}, err
	}
	for _, each := range platforms {
		platform, err := parsePlatform(each)
		if err != nil {
			return program{}, err
		}
		fmt.Fprintf(progress, "building archives for %s\n", each)
		for _, b := range parcels {
			if b.os != "" && b.os != platform.OS {
				continue
			}
			programs, err := build(ctx, source, filepath.Join(scratch, platform.OS+platform.Architecture), platform, b.programs...)
			if err != nil {
				return program{}, err
			}
			first = programs[0]
			at, err := first.commitTime()
			if err != nil {
				return program{}, err
			}
			archive, err := packPrograms(ctx, source, programs, platform, license, at)
			if err != nil {
				return program{}, err
			}
			called := archiveName(b.name, first.version(), platform)
			fmt.Fprintf(progress, "%s\t%.1f MB\n", called, float64(len(archive))/1e6)
			if err := writeFile(out, called, archive); err != nil {
				return program{}, err
			}
		}
	}
	return first, nil
}

func archiveName(parcel, version string, platform v1.Platform) string {
	extension := ".tar.gz"
	if platform.OS == "windows" {
		extension = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", parcel, version, platform.OS, platform.Architecture, extension)
}

// packPrograms makes the archive of a parcel for a platform.
func packPrograms(ctx context.Context, source string, programs []program, platform v1.Platform, license []byte, at time.Time,
) ([]byte, error) {
	of, err := readLicenses(ctx, source, programs)
	if err != nil {
		return nil, err
	}
	files := newTree(at)
	files.add("LICENSE", 0o644, license)
	for _, p := range programs {
		content, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		document, err := sbom(p, of, at)
		if err != nil {
			return nil, err
		}
		files.add(filepath.Base(p.file), 0o755, content)
		files.add(p.name+".cdx.json", 0o644, document)
	}
	if platform.OS == "windows" {
		return files.zip()
	}
	return files.tarGzip()
}
