package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// refName is the annotation with the name and tag of an image in a layout; containerd imports under the other one.
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
	// localName is the registry in the names of images in the archive; nothing is fetched from it.
	localName = "localhost/"
)

// makeImages builds the images of a checkout into out: layout/, images.tar, and an SBOM for each image.
func makeImages(ctx context.Context, progress io.Writer, source, scratch, out string, platforms []string) error {
	folder := filepath.Join(out, layoutFolder)
	if _, err := os.Stat(filepath.Join(out, provenanceFile)); err == nil {
		return fmt.Errorf("%s has a release, whose images would be replaced: remove it, or choose another folder", out)
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(descriptions))
	indexes := map[string]v1.ImageIndex{}
	var artifacts []v1.Image
	var tag string
	var at time.Time
	table := tabwriter.NewWriter(progress, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tPLATFORM\tCOMPRESSED\tDIGEST")
	for _, each := range platforms {
		platform, err := parsePlatform(each)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "building images for %s\n", each)
		programs, err := build(ctx, source, filepath.Join(scratch, "images", platform.Architecture), platform, names...)
		if err != nil {
			return err
		}
		of, err := readLicenses(ctx, source, programs)
		if err != nil {
			return err
		}
		for _, p := range programs {
			if at, err = p.commitTime(); err != nil {
				return err
			}
			tag = p.tag()
			made, err := image(p, platform, at)
			if err != nil {
				return err
			}
			document, err := sbom(p, of, at)
			if err != nil {
				return err
			}
			if err := writeFile(out, fmt.Sprintf("%s_%s_%s.cdx.json", p.name, platform.OS, platform.Architecture), document); err != nil {
				return err
			}
			described, err := partial.Descriptor(made)
			if err != nil {
				return err
			}
			artifact, err := referrer(*described, document, sbomMediaType, nil)
			if err != nil {
				return err
			}
			artifacts = append(artifacts, artifact)
			if indexes[p.name] == nil {
				indexes[p.name] = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
			}
			indexes[p.name] = mutate.AppendManifests(indexes[p.name], mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &platform}})
			size, digest, err := measure(made)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s:%s\t%s\t%.1f MB\t%s\n", p.name, tag, each, float64(size)/1e6, digest)
		}
	}
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	for _, n := range names {
		if err := written.AppendIndex(indexes[n], layout.WithAnnotations(map[string]string{refName: n + ":" + tag, containerdName: localName + n + ":" + tag})); err != nil {
			return fmt.Errorf("write the layout: %w", err)
		}
	}
	for _, artifact := range artifacts {
		if err := written.AppendImage(artifact); err != nil {
			return fmt.Errorf("write the layout: %w", err)
		}
	}
	files := newTree(at)
	if err := files.addFolder(folder, ""); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(out, "images.tar"))
	if err != nil {
		return err
	}
	if err := errors.Join(files.tar(archive), archive.Close()); err != nil {
		return fmt.Errorf("write %s: %w", archive.Name(), err)
	}
	return table.Flush()
}

// measure returns the size of an image as it is pulled, and its digest.
func measure(made v1.Image) (int64, v1.Hash, error) {
	layers, err := made.Layers()
	if err != nil {
		return 0, v1.Hash{}, err
	}
	var size int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return 0, v1.Hash{}, err
		}
		size += n
	}
	digest, err := made.Digest()
	return size, digest, err
}

// pushImages pushes the layout in out to a registry: REGISTRY/NAME:VERSION for each image and the chart, then what refers to these: SBOMs,
// signatures and provenance.
func pushImages(ctx context.Context, progress io.Writer, out, registry string) error {
	index, err := layout.ImageIndexFromPath(filepath.Join(out, layoutFolder))
	if err != nil {
		return fmt.Errorf("there are no images in %s: run make images first: %w", out, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	items, err := partial.Manifests(index)
	if err != nil {
		return err
	}
	pusher, err := remote.NewPusher(remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return err
	}
	repositories := map[v1.Hash]name.Repository{} // of each digest
	referrers := 0
	for i, d := range manifest.Manifests {
		item := items[i].(remote.Taggable)
		raw, err := item.RawManifest()
		if err != nil {
			return err
		}
		var of struct {
			Subject   *v1.Descriptor
			Manifests []v1.Descriptor
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return err
		}
		var reference name.Reference
		if called := d.Annotations[refName]; called == "" {
			reference = repositories[of.Subject.Digest].Digest(d.Digest.String())
			referrers++
		} else if reference, err = name.ParseReference(registry + "/" + called); err != nil {
			return fmt.Errorf("invalid registry %q: %w", registry, err)
		}
		if err := pusher.Push(ctx, reference, item); err != nil {
			return fmt.Errorf("push %s: %w", reference, err)
		}
		if of.Subject == nil {
			fmt.Fprintf(progress, "pushed %s@%s\n", reference, d.Digest)
		}
		for _, each := range append(of.Manifests, d) {
			repositories[each.Digest] = reference.Context()
		}
	}
	fmt.Fprintf(progress, "pushed %d SBOMs, signatures and statements\n", referrers)
	return nil
}

// writeFile writes a file of out, and makes the folder where it is missing.
func writeFile(out, called string, data []byte) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, called), data, 0o644)
}
