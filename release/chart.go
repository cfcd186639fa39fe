package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// chartFile is the name of the file in a chart that describes it.
const chartFile = "credence/Chart.yaml"

// packChart packs the Helm chart of a checkout as Helm would, with the version of a program of the same checkout: its images are those
// that have this version as their tag.
func packChart(source string, p program, at time.Time) (called string, chart tree, err error) {
	folder, chart := filepath.Join(source, "deploy", "chart", "credence"), newTree(at)
	if err := chart.addFolder(folder, "credence"); err != nil {
		return "", tree{}, fmt.Errorf("read the chart: %w", err)
	}
	ignored, err := os.ReadFile(filepath.Join(folder, ".helmignore"))
	if err != nil {
		return "", tree{}, err
	}
	patterns := append(strings.Fields(string(ignored)), ".helmignore")
	maps.DeleteFunc(chart.MapFS, func(name string, _ *fstest.MapFile) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, _ := path.Match(pattern, path.Base(name)) // a pattern that is wrong matches nothing
			return matches
		})
	})
	version := strings.TrimPrefix(p.version(), "v")
	file := chart.MapFS[chartFile]
	for field, value := range map[string]string{"version": version, "appVersion": p.tag()} {
		line := regexp.MustCompile(`(?m)^` + field + `: .*$`)
		if file == nil || len(line.FindAll(file.Data, -1)) != 1 {
			return "", tree{}, fmt.Errorf("%s has no line with %s", chartFile, field)
		}
		file.Data = line.ReplaceAll(file.Data, fmt.Appendf(nil, "%s: %q", field, value))
	}
	return "credence-" + version + ".tgz", chart, nil
}

// chartArtifact makes the artifact that Helm pulls from a registry: the chart, and its description as JSON.
func chartArtifact(chart tree, archive []byte, annotations map[string]string) (v1.Image, error) {
	config, err := yaml.YAMLToJSON(chart.MapFS[chartFile].Data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", chartFile, err)
	}
	return artifact(v1.Manifest{Annotations: annotations, Config: v1.Descriptor{MediaType: "application/vnd.cncf.helm.config.v1+json"}},
		bytes.TrimSpace(config), archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
}
