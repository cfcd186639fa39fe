package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A program is one that was built for a platform.
type program struct {
	name string
	file string
	// info is what the Go toolchain put into it: modules, versions, the commit.
	info *buildinfo.BuildInfo
}

// setting returns a setting of the build, such as vcs.revision; empty without one.
func (p program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// version is the version of the main module: a tag, or Go's pseudo-version of the commit.
func (p program) version() string { return p.info.Main.Version }

// tag is the version as a tag of an image, which has no plus sign.
func (p program) tag() string { return strings.ReplaceAll(p.version(), "+", "_") }

// commitTime is when the commit was made.
func (p program) commitTime() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, p.setting("vcs.time"))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s has no time of a commit: build it in a checkout with git: %w", p.name, err)
	}
	return at.UTC(), nil
}

// parsePlatform reads OS/ARCHITECTURE.
func parsePlatform(s string) (v1.Platform, error) {
	os, architecture, ok := strings.Cut(s, "/")
	if !ok || os == "" || architecture == "" || strings.Contains(architecture, "/") {
		return v1.Platform{}, fmt.Errorf("invalid platform %q: want OS/ARCHITECTURE, such as linux/amd64", s)
	}
	return v1.Platform{OS: os, Architecture: architecture}, nil
}

// build builds the programs of that name under cmd/ of a checkout for a platform, statically and without paths of this machine, into a folder.
func build(ctx context.Context, source, into string, platform v1.Platform, names ...string) ([]program, error) {
	into, err := filepath.Abs(into)
	if err != nil {
		return nil, err
	}
	// The same flags as the Makefile's, so that the build cache is shared; -buildvcs, so that each program names its commit.
	arguments := []string{"build", "-buildvcs=true", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", into + string(filepath.Separator)}
	for _, name := range names {
		arguments = append(arguments, "./cmd/"+name)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build for %s/%s: %w\n%s", platform.OS, platform.Architecture, err, bytes.TrimSpace(output))
	}
	var programs []program
	for _, name := range names {
		file := filepath.Join(into, name)
		if platform.OS == "windows" {
			file += ".exe"
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read what was built: %w", err)
		}
		p := program{name: name, file: file, info: info}
		if p.setting("vcs.revision") == "" {
			return nil, errors.New("the programs do not name their commit: build in a clone with git (the Go toolchain does not know worktrees)")
		}
		programs = append(programs, p)
	}
	return programs, nil
}
