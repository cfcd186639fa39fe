// Package version reports which build is running. In goes the build information that the Go toolchain put into the executable; out
// comes an Info. It reads nothing else, and holds no variable that a linker would have to set.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Info describes a build. Fields that the toolchain did not stamp are empty.
type Info struct {
	// Version is the version of the main module, such as v1.2.0, or devel for a build from a checkout without one.
	Version string `json:"version"`
	// Revision is the commit that was built; Modified reports whether the checkout had changes on top of it.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Time is the time of the commit (RFC 3339).
	Time string `json:"time,omitempty"`
	// GoVersion is the toolchain, such as go1.26.0; Platform is GOOS/GOARCH.
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Read returns the Info of the running executable.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return of(build)
}

func of(build *debug.BuildInfo) Info {
	info := Info{
		Version:   cmp.Or(build.Main.Version, "devel"),
		GoVersion: build.GoVersion,
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info.Version == "(devel)" {
		info.Version = "devel"
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.time":
			info.Time = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// String is one line for people, such as v1.2.0 (commit 0123456789ab, go1.26.0, linux/amd64).
func (i Info) String() string {
	commit := ""
	if i.Revision != "" {
		// Twelve digits are what Go's own pseudo-versions show of a commit.
		commit = fmt.Sprintf("commit %.12s", i.Revision)
		if i.Modified {
			commit += " with changes"
		}
		commit += ", "
	}
	return fmt.Sprintf("%s (%s%s, %s)", i.Version, commit, i.GoVersion, i.Platform)
}
