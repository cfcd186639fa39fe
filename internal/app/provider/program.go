package provider

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

var errNoProgram = errors.New("the program credence, which gets credentials, is neither beside this one nor in a folder of PATH: install it there")

// findProgram returns the path of credence: beside this program, or else in a folder that PATH names absolutely. A folder that
// depends on where the client was started is never looked into.
func findProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", errNoProgram
	}
	if target, err := filepath.EvalSymlinks(self); err == nil {
		self = target
	}
	folders := append([]string{filepath.Dir(self)}, filepath.SplitList(os.Getenv("PATH"))...)
	return findIn(folders, self)
}

func findIn(folders []string, self string) (string, error) {
	name := "credence"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	this, _ := os.Stat(self)
	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err != nil || !runnable(info) || this != nil && os.SameFile(this, info) {
			continue
		}
		return path, nil
	}
	return "", errNoProgram
}

func runnable(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}
