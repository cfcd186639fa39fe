package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// scratch is the folder for temporary files of all parts. Processes that they start have it in their environment.
type scratch struct{ folder, programs string }

// newScratch makes a folder with a short path: unix sockets lie in it.
func newScratch(programs string) (*scratch, error) {
	folder, err := os.MkdirTemp("", "ct")
	if err == nil {
		err = os.Chmod(folder, 0o711) // tests run programs as other users, too
	}
	return &scratch{folder, programs}, err
}

func (s *scratch) environment() []string {
	return []string{"TMPDIR=" + s.folder, "CREDENCE_BIN=" + s.programs, "DEVCLUSTER_BIN=" + filepath.Join(s.programs, "credence-devcluster")}
}

// clean stops the planes in the folder, kills all processes that have it in their environment, and removes it with its mounts.
func (s *scratch) clean() error {
	for _, pattern := range []string{"*/endpoints.json", "*/*/endpoints.json", "*/*/*/endpoints.json"} {
		planes, _ := filepath.Glob(filepath.Join(s.folder, pattern)) // the pattern is valid
		for _, plane := range planes {
			_ = exec.Command(filepath.Join(s.programs, "credence"), "down", "--dir", filepath.Dir(plane)).Run() // what is left is killed
		}
	}
	return errors.Join(killAll("TMPDIR="+s.folder), unmountBelow(s.folder), os.RemoveAll(s.folder))
}
