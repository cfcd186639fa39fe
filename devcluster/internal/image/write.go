package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Media types of the OCI image specification v1.1.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// nameAnnotation has, for containerd, the whole name of an image that it imports.
const nameAnnotation = "io.containerd.image.name"

// programMode lets every user of a container run the program.
const programMode = 0o755

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Write writes an image with the static program at path as /<file name>, which is its entry point with args before those of
// the container. fullName is as FullName returns it.
func Write(out io.Writer, fullName, path string, args ...string) error {
	if err := write(tar.NewWriter(out), fullName, path, args); err != nil {
		return fmt.Errorf("make image of %s: %w", path, err)
	}
	return nil
}

func write(archive *tar.Writer, fullName, path string, args []string) error {
	layer, err := describeLayer(path)
	if err != nil {
		return err
	}
	program := "/" + filepath.Base(path)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": append([]string{program}, args...), "Env": []string{"PATH=/"}, "WorkingDir": "/"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe(configType, config), "layers": []descriptor{layer},
	})
	if err != nil {
		return err
	}
	named := describe(manifestType, manifest)
	named.Annotations = map[string]string{nameAnnotation: fullName}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{named}})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{blob(named), manifest},
		{blob(describe(configType, config)), config},
	} {
		if err := add(archive, file.name, file.content); err != nil {
			return err
		}
	}
	if err := archive.WriteHeader(&tar.Header{Name: blob(layer), Mode: 0o644, Size: layer.Size}); err != nil {
		return err
	}
	if err := writeLayer(archive, path); err != nil {
		return err
	}
	return archive.Close()
}

func blob(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }

func describe(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// describeLayer reads the program once more than needed to write it, so that it is never held in memory.
func describeLayer(path string) (descriptor, error) {
	counted := &counter{hash: sha256.New()}
	if err := writeLayer(counted, path); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: layerType, Digest: "sha256:" + hex.EncodeToString(counted.hash.Sum(nil)), Size: counted.size}, nil
}

type counter struct {
	hash hash.Hash
	size int64
}

func (c *counter) Write(data []byte) (int, error) {
	c.size += int64(len(data))
	return c.hash.Write(data)
}

func writeLayer(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	layer := tar.NewWriter(out)
	if err := layer.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: programMode, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(layer, file); err != nil {
		return err
	}
	return layer.Close()
}

func add(archive *tar.Writer, name string, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
