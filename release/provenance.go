package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Names of files in a release.
const (
	checksumsFile  = "checksums.txt"
	provenanceFile = "provenance.json"
	layoutFolder   = "layout"
)

const (
	repository = "https://" + ours
	// buildType is the page that describes parameters and build; SLSA wants a URL.
	buildType         = repository + "/blob/main/docs/howto/check-a-release.md"
	provenanceType    = "https://slsa.dev/provenance/v1"
	statementType     = "https://in-toto.io/Statement/v1"
	inTotoPayloadType = "application/vnd.in-toto+json"
)

// parameters are what a release is made from beside the commit.
type parameters struct {
	// Version is empty for the version of the commit.
	Version   string   `json:"version,omitempty"`
	Platforms []string `json:"platforms"`
	// URL is where archives of all versions are published.
	URL string `json:"url"`
}

// statement is an in-toto statement.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// provenance is the predicate of SLSA's build provenance, with what our build has of it.
type provenance struct {
	BuildDefinition struct {
		BuildType          string     `json:"buildType"`
		ExternalParameters parameters `json:"externalParameters"`
		InternalParameters struct {
			Go string `json:"go"`
		} `json:"internalParameters"`
		Dependencies [1]struct {
			URI    string            `json:"uri"`
			Digest map[string]string `json:"digest"`
		} `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func newProvenance(from parameters, commit string) *provenance {
	var p provenance
	p.BuildDefinition.BuildType, p.BuildDefinition.ExternalParameters = buildType, from
	p.BuildDefinition.InternalParameters.Go = runtime.Version()
	p.BuildDefinition.Dependencies[0].URI = "git+" + repository
	p.BuildDefinition.Dependencies[0].Digest = map[string]string{"gitCommit": commit}
	p.RunDetails.Builder.ID = repository + "/blob/main/release"
	return &p
}

func (p *provenance) commit() string { return p.BuildDefinition.Dependencies[0].Digest["gitCommit"] }

// readProvenance reads a statement that makeRelease has written.
func readProvenance(file string) (*statement, *provenance, error) {
	p := &provenance{}
	s := &statement{Predicate: p}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, s); err != nil || s.PredicateType != provenanceType || p.BuildDefinition.BuildType != buildType {
		return nil, nil, errors.Join(fmt.Errorf("%s does not have the provenance of a release of Credence", file), err)
	}
	return s, p, nil
}

// sumFiles returns the files of a folder by name with their checksums, without folders.
func sumFiles(folder string) ([]subject, error) {
	found, err := os.ReadDir(folder)
	var sums []subject
	for _, each := range found {
		if each.IsDir() {
			continue
		}
		file, err := os.Open(filepath.Join(folder, each.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		sums = append(sums, subject{each.Name(), map[string]string{"sha256": fmt.Sprintf("%x", sum.Sum(nil))}})
	}
	return sums, err
}

// named returns the descriptors of a layout that have a name: images and the chart.
func named(index v1.ImageIndex) ([]v1.Descriptor, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(manifest.Manifests), func(d v1.Descriptor) bool { return d.Annotations[refName] == "" }), nil
}

// writeProvenance writes the checksums of the files of a release, and the statement about these and what is in its layout.
func writeProvenance(out string, from parameters, commit string) error {
	subjects, err := sumFiles(out)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, s := range subjects {
		fmt.Fprintf(&sums, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(out, layoutFolder))
	if err != nil {
		return err
	}
	artifacts, err := named(index)
	if err != nil {
		return err
	}
	for _, d := range artifacts {
		subjects = append(subjects, subject{d.Annotations[refName], map[string]string{d.Digest.Algorithm: d.Digest.Hex}})
	}
	text, err := json.MarshalIndent(statement{statementType, subjects, provenanceType, newProvenance(from, commit)}, "", "  ")
	return errors.Join(err, writeFile(out, checksumsFile, sums.Bytes()), writeFile(out, provenanceFile, append(text, '\n')))
}

// rebuild makes a release anew from the commit and the parameters of a provenance, and compares what both have.
func rebuild(ctx context.Context, progress io.Writer, source, file string) error {
	published, of, err := readProvenance(file)
	if err != nil {
		return err
	}
	if head, err := git(ctx, source, "rev-parse", "HEAD"); err != nil || head != of.commit() {
		return cmp.Or(err, fmt.Errorf("%s is of commit %s, and %s is checked out: git checkout %[2]s", file, of.commit(), head))
	}
	if v := of.BuildDefinition.InternalParameters.Go; v != runtime.Version() {
		return fmt.Errorf("%s was built by %s, and this is %s: export GOTOOLCHAIN=%[2]s", file, v, runtime.Version())
	}
	scratch, err := os.MkdirTemp("", "credence-rebuild-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	out := filepath.Join(scratch, "release")
	if err := makeRelease(ctx, progress, source, out, of.BuildDefinition.ExternalParameters, nil); err != nil {
		return err
	}
	rebuilt, _, err := readProvenance(filepath.Join(out, provenanceFile))
	if err != nil {
		return err
	}
	if different := compare(published.Subject, rebuilt.Subject); len(different) > 0 {
		return fmt.Errorf("the rebuilt release differs from %s:\n%s", file, strings.Join(different, "\n"))
	}
	fmt.Fprintf(progress, "all %d digests of %s are those of a rebuild\n", len(rebuilt.Subject), file)
	return nil
}

// compare names each subject that two lists do not have with the same digest.
func compare(published, rebuilt []subject) []string {
	// A name may be there twice, and a digest may be of another algorithm: verifiers look for any digest that they know.
	digests := map[string][2][]string{}
	for i, list := range [][]subject{published, rebuilt} {
		for _, s := range list {
			pair := digests[s.Name]
			for _, algorithm := range slices.Sorted(maps.Keys(s.Digest)) {
				pair[i] = append(pair[i], strings.TrimPrefix(algorithm+":", "sha256:")+s.Digest[algorithm])
			}
			if len(s.Digest) == 0 {
				pair[i] = append(pair[i], "no digest")
			}
			digests[s.Name] = pair
		}
	}
	var different []string
	for name, pair := range digests {
		if !slices.Equal(pair[0], pair[1]) {
			different = append(different, fmt.Sprintf("%s: %s, rebuilt: %s", name, cmp.Or(strings.Join(pair[0], ", "), "missing"), cmp.Or(strings.Join(pair[1], ", "), "missing")))
		}
	}
	slices.Sort(different)
	return different
}
