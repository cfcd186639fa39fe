package kubeconfig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ErrLeadsBack: to read the kubeconfig would be to run this program, which would read a kubeconfig, and so on.
var ErrLeadsBack = errors.New("the kubeconfig leads back to this program")

// Guard is a variable in the environment of each program that a kubeconfig's user names and this program runs. If that program,
// whatever its name, comes to run this one for a source that reads a kubeconfig, it is refused there. Its value does not matter.
const Guard = "CREDENCE_CREDENTIAL_WITHIN"

const wayOut = "give the source a user with credentials of its own: another kubeconfig, or another context of it"

// program is what the user of a kubeconfig runs for credentials.
type program struct {
	Command string   `yaml:"command"`
	Args    []string `yaml:"args"`
}

// names are those that this program is installed under.
func names() []string { return []string{"credence", "credence-credential", "kubectl-credence"} }

// withoutKubeconfig are the sources that read no kubeconfig, so that nothing can lead back through them.
func withoutKubeconfig() []string { return []string{"oidc", "token-exchange", "file"} }

// check refuses a program that leads back to the one with the path self.
func (p program) check(self string) error {
	args, ours := p.ours(self)
	if !ours {
		return nil
	}
	if len(args) > 0 && args[0] == "credential" {
		args = args[1:]
	}
	if len(args) > 0 && slices.Contains(withoutKubeconfig(), args[0]) {
		return nil
	}
	return fmt.Errorf("%w: the user's exec runs %s; %s", ErrLeadsBack, filepath.Base(p.Command), wayOut)
}

// ours reports whether the program is this one, under any name or link, and returns its arguments.
func (p program) ours(self string) (args []string, ours bool) {
	path, err := exec.LookPath(p.Command)
	if err != nil {
		// It cannot be run now, but perhaps a moment later.
		path = p.Command
	}
	paths := []string{p.Command, path}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		paths = append(paths, target)
	}
	for _, path := range paths {
		name := programName(path)
		if slices.Contains(names(), name) {
			return p.Args, true
		}
		if name == "kubectl" && len(p.Args) > 0 && p.Args[0] == "credence" {
			return p.Args[1:], true
		}
	}
	return p.Args, sameAsOne(path, self)
}

// programName is the name of a program without what only Windows adds, and writes as it likes.
func programName(path string) string {
	name := filepath.Base(path)
	if runtime.GOOS == "windows" {
		name = strings.ToLower(name)
	}
	if extension := filepath.Ext(name); strings.EqualFold(extension, ".exe") {
		name = strings.TrimSuffix(name, extension)
	}
	return name
}

// sameAsOne reports whether a file is this program, or one that is installed beside it: a hard link has a name of its own.
func sameAsOne(path, self string) bool {
	file, err := os.Stat(path)
	if err != nil || self == "" {
		return false
	}
	candidates := []string{self}
	for _, name := range names() {
		candidates = append(candidates, filepath.Join(filepath.Dir(self), name+filepath.Ext(self)))
	}
	return slices.ContainsFunc(candidates, func(candidate string) bool {
		info, err := os.Stat(candidate)
		return err == nil && os.SameFile(file, info)
	})
}
