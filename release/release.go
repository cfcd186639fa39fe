package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/sigstore/sigstore/pkg/signature"
)

// makeRelease makes all files of a release into out, and signs them where there is a key. In out, only the same release is replaced.
func makeRelease(ctx context.Context, progress io.Writer, source, out string, from parameters, key signature.Signer) error {
	if changed, err := git(ctx, source, "status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(err, fmt.Errorf("a release is made of a commit, and these changes are not committed:\n%s", changed))
	}
	linux := slices.DeleteFunc(slices.Clone(from.Platforms), func(p string) bool { return !strings.HasPrefix(p, "linux/") })
	if len(linux) == 0 {
		return fmt.Errorf("images need a platform of Linux, and the platforms are %q", from.Platforms)
	}
	commit, err := git(ctx, source, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := replaceable(out, from.Version, commit); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(out), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if source, err = tagged(ctx, source, from.Version, scratch); err != nil {
		return err
	}
	made := filepath.Join(scratch, "made")
	first, err := makeArchives(ctx, progress, source, scratch, made, from.Platforms)
	if err != nil {
		return err
	}
	if err := makeImages(ctx, progress, source, scratch, made, linux); err != nil {
		return err
	}
	err = errors.Join(addChart(source, made, first), fillTemplates(made, first.version(), from), writeProvenance(made, from, commit))
	if err != nil {
		return err
	}
	if key == nil {
		fmt.Fprintln(progress, "not signed: without a key")
	} else if err := sign(made, key); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(made, out)
}

// replaceable reports an error if out has anything but the same release.
func replaceable(out, version, commit string) error {
	found, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil
	}
	_, p, err := readProvenance(filepath.Join(out, provenanceFile))
	if err != nil || p.BuildDefinition.ExternalParameters.Version != version || p.commit() != commit {
		return errors.Join(fmt.Errorf("%s has files of another version or commit: remove it, or choose another folder", out), err)
	}
	return nil
}

// addChart packs the chart of a checkout for the version of a program, as a file and as an artifact of the layout.
func addChart(source, out string, p program) error {
	at, err := p.commitTime()
	if err != nil {
		return err
	}
	called, chart, err := packChart(source, p, at)
	if err != nil {
		return err
	}
	archive, err := chart.tarGzip()
	if err != nil {
		return err
	}
	made, err := chartArtifact(chart, archive, labels("credence", "The Helm chart of Credence", p, at))
	if err != nil {
		return err
	}
	folder, err := layout.FromPath(filepath.Join(out, layoutFolder))
	if err != nil {
		return err
	}
	name := "charts/credence:" + strings.TrimPrefix(p.tag(), "v")
	return errors.Join(writeFile(out, called, archive), folder.AppendImage(made, layout.WithAnnotations(map[string]string{refName: name})))
}

//go:embed templates
var templates embed.FS

// fillTemplates writes what package managers install from: each has a template, and reads URLs and checksums of archives.
func fillTemplates(out, version string, from parameters) error {
	type archive struct {
		v1.Platform
		URL, Sum string
	}
	sums, err := sumFiles(out)
	if err != nil {
		return err
	}
	var archives []archive
	for _, each := range from.Platforms {
		platform, err := parsePlatform(each)
		if err != nil {
			return err
		}
		name := archiveName(parcels[0].name, version, platform)
		at := slices.IndexFunc(sums, func(s subject) bool { return s.Name == name })
		archives = append(archives, archive{platform, from.URL + "/" + version + "/" + name, sums[at].Digest["sha256"]})
	}
	all, err := template.ParseFS(templates, "templates/*")
	if err != nil {
		return err
	}
	for _, t := range all.Templates() {
		var text strings.Builder
		if err := t.Execute(&text, map[string]any{"Version": version, "Archives": archives}); err != nil {
			return err
		}
		if err := writeFile(out, t.Name(), []byte(text.String())); err != nil {
			return err
		}
	}
	return nil
}
