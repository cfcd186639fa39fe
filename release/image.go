package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of programs in an image: a number, so that Kubernetes can check runAsNonRoot.
const user = "65532"

// bin is the folder of programs in an image.
const bin = "/usr/local/bin"

// descriptions are the labels of images, and the list of them.
var descriptions = map[string]string{
	"credence-server":            "The servers of Credence: API server, controller, agent, webhook, binder, profiles, signer",
	"credence-discovery":         "The server of OIDC discovery documents of Credence",
	"credence-node":              "The part of Credence on each node",
	"credence-image-credentials": "The image credential provider of Credence for kubelets, which copies itself onto a node",
	"credence-registry":          "Keeps passwords of registries fresh in Secrets",
	"credence":                   "The command line of Credence",
}

// image makes the image of a program for a platform: nothing but the program, the certificate authorities of the web, and a user.
func image(p program, platform v1.Platform, at time.Time) (v1.Image, error) {
	content, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	common, own := newTree(at), newTree(at)
	common.add("etc/passwd", 0o644, []byte("credence:x:"+user+":"+user+":Credence:/tmp:/sbin/nologin\n"))
	common.add("etc/group", 0o644, []byte("credence:x:"+user+":\n"))
	common.add("etc/ssl/certs/ca-certificates.crt", 0o644, authorities())
	own.add(path.Join(bin, p.name)[1:], 0o755, content)
	lower, err := layer(common)
	if err != nil {
		return nil, err
	}
	upper, err := layer(own)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err := mutate.Append(base,
		mutate.Addendum{Layer: lower, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "certificate authorities, user"}},
		mutate.Addendum{Layer: upper, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: p.name}},
	)
	if err != nil {
		return nil, fmt.Errorf("make the image of %s: %w", p.name, err)
	}
	file, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created, file.OS, file.Architecture = v1.Time{Time: at}, platform.OS, platform.Architecture
	file.Config = v1.Config{
		User:       user + ":" + user,
		Env:        []string{"PATH=" + bin},
		Entrypoint: []string{path.Join(bin, p.name)},
		WorkingDir: "/",
		Labels:     labels(p.name, descriptions[p.name], p, at),
	}
	return mutate.ConfigFile(made, file)
}

// labels are those that the OCI image specification names.
func labels(title, description string, p program, at time.Time) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":       title,
		prefix + "description": description,
		prefix + "version":     p.version(),
		prefix + "revision":    p.setting("vcs.revision"),
		prefix + "created":     at.Format(time.RFC3339),
		prefix + "source":      "https://" + p.info.Main.Path,
		prefix + "licenses":    "Apache-2.0",
	}
}

// authorities are the certificate authorities of Mozilla's list, in PEM. One that is trusted with conditions, which a file of
// certificates cannot express, is left out.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer does not fail
		}
	}
	return out.Bytes()
}

// layer makes a layer of files.
func layer(files tree) (v1.Layer, error) {
	var out bytes.Buffer
	if err := files.tar(&out); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}
