package apiserver

import (
	"runtime"

	kubernetes "k8s.io/apimachinery/pkg/version"
	component "k8s.io/component-base/compatibility"

	"github.com/credence-id/credence/internal/version"
)

// effectiveVersion has the API's compatibility with Kubernetes, and shows the build of this program at /version.
type effectiveVersion struct{ component.EffectiveVersion }

func (effectiveVersion) Info() *kubernetes.Info {
	build := version.Read()
	info := &kubernetes.Info{
		GitVersion: build.Version, GitCommit: build.Revision, BuildDate: build.Time,
		GoVersion: build.GoVersion, Compiler: runtime.Compiler, Platform: build.Platform,
	}
	switch {
	case build.Modified:
		info.GitTreeState = "dirty"
	case build.Revision != "":
		info.GitTreeState = "clean"
	}
	return info
}
