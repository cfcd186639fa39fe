package main

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// signedType is the predicate of a signature of cosign: this image was signed, and nothing else.
	signedType = "https://sigstore.dev/cosign/sign/v1"
)

// signerOf returns the signer of a key, or nil for a release that is not signed here. One with a version is not left unsigned by mistake.
func signerOf(key, version string) (signature.Signer, error) {
	switch {
	case key == "none" || key == "" && version == "":
		return nil, nil
	case key == "":
		return nil, errors.New("no key: KEY=cosign.key of cosign generate-key-pair, with its password in COSIGN_PASSWORD, or KEY=none")
	}
	return readKey(key)
}

// readKey reads a key that "cosign generate-key-pair" has made.
func readKey(file string) (signature.Signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc([]byte(os.Getenv("COSIGN_PASSWORD"))))
	if err != nil {
		return nil, fmt.Errorf("read the key %s with the password in COSIGN_PASSWORD: %w", file, err)
	}
	return signature.LoadSigner(key, crypto.SHA256)
}

// newBundle signs content as a Sigstore bundle: in an envelope with the type of the payload, or detached where that is empty.
func newBundle(key signature.Signer, content []byte, payloadType string) ([]byte, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	der, err := cryptoutils.MarshalPublicKeyToDER(public)
	if err != nil {
		return nil, err
	}
	hint, digest := sha256.Sum256(der), sha256.Sum256(content)
	if payloadType != "" {
		key = dsse.WrapSigner(key, payloadType)
	}
	signed, err := key.SignMessage(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	made := map[string]any{"mediaType": bundleType, "verificationMaterial": map[string]any{
		"publicKey": map[string]string{"hint": base64.StdEncoding.EncodeToString(hint[:])},
	}}
	if payloadType != "" {
		made["dsseEnvelope"] = json.RawMessage(signed)
	} else {
		made["messageSignature"] = map[string]any{
			"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": digest[:]}, "signature": signed,
		}
	}
	return json.Marshal(made)
}

// sign signs checksums and provenance of a release, and adds both to each image and to the chart in its layout.
func sign(out string, key signature.Signer) error {
	for file, payloadType := range map[string]string{checksumsFile: "", provenanceFile: inTotoPayloadType} {
		content, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return err
		}
		signed, err := newBundle(key, content, payloadType)
		if err := errors.Join(err, writeFile(out, file+".sigstore.json", signed)); err != nil {
			return err
		}
	}
	attested, err := os.ReadFile(filepath.Join(out, provenanceFile+".sigstore.json"))
	if err != nil {
		return err
	}
	folder, err := layout.FromPath(filepath.Join(out, layoutFolder))
	if err != nil {
		return err
	}
	index, err := folder.ImageIndex()
	if err != nil {
		return err
	}
	artifacts, err := named(index)
	if err != nil {
		return err
	}
	for _, d := range artifacts {
		of := subject{Digest: map[string]string{d.Digest.Algorithm: d.Digest.Hex}}
		text, err := json.Marshal(statement{statementType, []subject{of}, signedType, struct{}{}})
		if err != nil {
			return err
		}
		signed, err := newBundle(key, text, inTotoPayloadType)
		if err != nil {
			return err
		}
		for predicate, content := range map[string][]byte{signedType: signed, provenanceType: attested} {
			made, err := referrer(d, content, bundleType, map[string]string{
				"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicate,
			})
			if err := errors.Join(err, folder.AppendImage(made)); err != nil {
				return err
			}
		}
	}
	return nil
}
