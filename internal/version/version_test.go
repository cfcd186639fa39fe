package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for name, test := range map[string]struct {
		build debug.BuildInfo
		want  Info
		text  string
	}{
		"release": {
			build: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.0"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-07-01T12:00:00Z"}, {Key: "vcs.modified", Value: "false"},
			}},
			want: Info{Version: "v1.2.0", Revision: "0123456789abcdef0123", Time: "2026-07-01T12:00:00Z", GoVersion: "go1.26.0", Platform: platform},
			text: "v1.2.0 (commit 0123456789ab, go1.26.0, " + platform + ")",
		},
		"changed checkout": {
			build: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"},
			}},
			want: Info{Version: "devel", Revision: "0123456789abcdef0123", Modified: true, GoVersion: "go1.26.0", Platform: platform},
			text: "devel (commit 0123456789ab with changes, go1.26.0, " + platform + ")",
		},
		"nothing stamped": {
			build: debug.BuildInfo{GoVersion: "go1.26.0"},
			want:  Info{Version: "devel", GoVersion: "go1.26.0", Platform: platform},
			text:  "devel (go1.26.0, " + platform + ")",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := of(&test.build)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
			if got.String() != test.text {
				t.Errorf("text %q, want %q", got, test.text)
			}
		})
	}
}

func TestReadKnowsTheToolchain(t *testing.T) {
	if got := Read().GoVersion; got != runtime.Version() {
		t.Errorf("go version %q, want %q", got, runtime.Version())
	}
}
