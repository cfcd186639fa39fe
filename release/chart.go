package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// packChart packs the Helm chart of a checkout as Helm would, with the version of a program of the same checkout: its images are those
// that have this version as their tag.
func packChart(source string, p program, at time.Time) (called string, archive []byte, err error) {
	folder := filepath.Join(source, "deploy", "chart", "credence")
	entries, err := readFolder(folder, "credence")
	if err != nil {
		return "", nil, fmt.Errorf("read the chart: %w", err)
	}
	ignored, err := os.ReadFile(filepath.Join(folder, ".helmignore"))
	if err != nil {
		return "", nil, err
	}
	patterns := append(strings.Fields(string(ignored)), ".helmignore")
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, _ := path.Match(pattern, path.Base(e.name)) // a pattern that is wrong matches nothing
			return matches
		})
	})
	version := strings.TrimPrefix(p.version(), "v")
	for i, e := range entries {
		if e.name != "credence/Chart.yaml" {
			continue
		}
		data, err := os.ReadFile(e.file)
		if err != nil {
			return "", nil, err
		}
		for field, value := range map[string]string{"version": version, "appVersion": p.tag()} {
			line := regexp.MustCompile(`(?m)^` + field + `: .*$`)
			if len(line.FindAll(data, -1)) != 1 {
				return "", nil, fmt.Errorf("%s has no line with %s", e.file, field)
			}
			data = line.ReplaceAll(data, fmt.Appendf(nil, "%s: %q", field, value))
		}
		entries[i] = entry{name: e.name, mode: e.mode, data: data}
	}
	archive, err = tarGzip(entries, at)
	return "credence-" + version + ".tgz", archive, err
}
