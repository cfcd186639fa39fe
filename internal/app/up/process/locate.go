//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Locate finds a program beside executable (the path of this program, symbolic links followed or not), then in PATH.
func Locate(program, executable string) (string, error) {
	folders := []string{filepath.Dir(executable)}
	if target, err := filepath.EvalSymlinks(executable); err == nil && filepath.Dir(target) != folders[0] {
		folders = append(folders, filepath.Dir(target))
	}
	for _, folder := range folders {
		path := filepath.Join(folder, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s was found neither in %s nor in PATH: run make build", program, folders[0])
}
