package main

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifact makes an artifact of one file in a registry. The manifest has what is particular to it.
func artifact(m v1.Manifest, config, content []byte, mediaType types.MediaType) (v1.Image, error) {
	layer := static.NewLayer(content, mediaType)
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	m.SchemaVersion, m.MediaType, m.Layers = 2, types.OCIManifestSchema1, []v1.Descriptor{*described}
	if m.Config.Digest, m.Config.Size, err = v1.SHA256(bytes.NewReader(config)); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(single{raw, config, layer})
}

// referrer makes an artifact of one file that refers to an image or to another artifact.
func referrer(subject v1.Descriptor, content []byte, mediaType types.MediaType, annotations map[string]string) (v1.Image, error) {
	return artifact(v1.Manifest{
		ArtifactType: string(mediaType),
		Config:       v1.Descriptor{MediaType: "application/vnd.oci.empty.v1+json"},
		Subject:      &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations:  annotations,
	}, []byte("{}"), content, mediaType)
}

// single is an artifact with one layer.
type single struct {
	manifest, config []byte
	layer            v1.Layer
}

func (s single) RawManifest() ([]byte, error)                           { return s.manifest, nil }
func (s single) RawConfigFile() ([]byte, error)                         { return s.config, nil }
func (s single) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (s single) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return s.layer, nil }
