package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// module is one of the modules that "go list -m -json" prints.
type module struct {
	Path, Version, Dir string
	// GoModSum is the checksum of the file GoMod in go.sum: only those files are the same on all machines.
	GoMod, GoModSum string
	Main            bool
	Retracted       []string // with -retracted
	Error           *struct{ Err string }
	Replace         *module
}

// refusal is a line of the list of refused versions.
type refusal struct {
	path, versions, reason string
	// folder is that of the one module of this repository in which the version is allowed; empty for a refusal.
	folder string
	used   bool
}

// parseRefused reads the list: "MODULE VERSIONS REASON" and "allow FOLDER MODULE VERSION REASON".
func parseRefused(text string) ([]*refusal, error) {
	var list []*refusal
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, folder := strings.TrimSpace(line), ""
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "allow "); ok {
			folder, line, _ = strings.Cut(strings.TrimSpace(rest), " ")
		}
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[1] != "all" && !semver.IsValid(strings.TrimPrefix(fields[1], "<")) || folder != "" && !semver.IsValid(fields[1]) {
			return nil, fmt.Errorf("line %d: want MODULE VERSIONS REASON, with all, <v1.2.3 or v1.2.3, or allow FOLDER MODULE VERSION REASON", number)
		}
		list = append(list, &refusal{path: fields[0], versions: fields[1], reason: strings.Join(fields[2:], " "), folder: folder})
	}
	return list, nil
}

// has reports whether a version is among those of the line.
func (r refusal) has(path, version string) bool {
	if path != r.path {
		return false
	}
	if fixed, ok := strings.CutPrefix(r.versions, "<"); ok {
		return semver.Compare(version, fixed) < 0
	}
	return r.versions == "all" || r.versions == version
}

// checkModules holds the modules of build lists, each after the module of this repository that has it, against the list of refused
// versions, against retractions in the go.mod files of all of them, and against those that were looked up.
func checkModules(listed io.Reader, list []*refusal, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	type use struct {
		module
		folder string
	}
	var uses []use
	retracted := map[string][]*modfile.Retract{}
	read := map[string]bool{}
	var problems []error
	folder := ""
	for decoder := json.NewDecoder(listed); ; {
		var m module
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read the modules: %w", err)
		}
		if m.Main {
			if folder, err = filepath.Rel(root, m.Dir); err != nil {
				return err
			}
			continue
		}
		if m.Replace != nil {
			m = *m.Replace
		}
		if m.Error != nil {
			problems = append(problems, fmt.Errorf("%s: %s %s: %s", folder, m.Path, m.Version, m.Error.Err))
		}
		if m.Version == "" {
			continue // of this repository
		}
		uses = append(uses, use{m, folder})
		if m.GoModSum == "" || read[m.GoMod] {
			continue
		}
		read[m.GoMod] = true
		data, err := os.ReadFile(m.GoMod)
		if err != nil {
			return err
		}
		file, err := modfile.ParseLax(m.GoMod, data, nil)
		if err != nil {
			return err
		}
		retracted[m.Path] = append(retracted[m.Path], file.Retract...)
	}
	if len(uses) == 0 {
		return errors.New("no modules on standard input: want the output of go list -m -json all")
	}
	for _, u := range uses {
		var why []string
		for _, rationale := range u.Retracted {
			why = append(why, "retracted: "+rationale)
		}
		for _, r := range retracted[u.Path] {
			if semver.Compare(r.Low, u.Version) <= 0 && semver.Compare(u.Version, r.High) <= 0 {
				why = append(why, "retracted: "+r.Rationale)
			}
		}
		allowed := false
		for _, r := range list {
			switch {
			case !r.has(u.Path, u.Version):
			case r.folder == "":
				why = append(why, r.reason)
			case r.folder == u.folder:
				allowed, r.used = true, true
			}
		}
		if len(why) > 0 && !allowed {
			slices.Sort(why)
			problems = append(problems, fmt.Errorf("%s: %s %s is refused: %s", u.folder, u.Path, u.Version, strings.Join(slices.Compact(why), "; ")))
		}
	}
	for _, r := range list {
		if r.folder != "" && !r.used {
			problems = append(problems, fmt.Errorf("the list allows %s %s in %s, which does not have it: remove the line", r.path, r.versions, r.folder))
		}
	}
	return errors.Join(problems...)
}
