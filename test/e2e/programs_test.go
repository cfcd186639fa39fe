package e2e_test

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// Programs are the same wherever they are built, and their stack traces show no folder of that machine.
func TestProgramsHoldNoPathOfTheMachine(t *testing.T) {
	inTurn(t)
	root := need(filepath.Abs(repository))(t)
	for _, name := range []string{"credence", "credence-credential", "credence-devcluster", "credence-discovery", "credence-image-credentials", "credence-node", "credence-registry", "credence-server", "kubectl"} {
		info, err := buildinfo.ReadFile(program(name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-trimpath", Value: "true"}) {
			t.Errorf("%s was built without -trimpath", name)
		}
		content := need(os.ReadFile(program(name)))(t)
		for _, folder := range []string{"/internal/", "/cmd/", "/devcluster/"} {
			if at := bytes.Index(content, []byte(root+folder)); at >= 0 {
				t.Errorf("%s holds the path %s", name, content[at:][:len(root)+40])
			}
		}
	}
}
