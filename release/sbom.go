package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// sbomMediaType is that of a CycloneDX document in JSON.
const sbomMediaType = "application/vnd.cyclonedx+json"

// licenses are the SPDX identifiers of each module of a checkout, by path and version.
type licenses map[string][]string

// readLicenses reads the licenses of the modules that programs are made of, from the module cache. A module without a license that is
// known by its text is an error: it must not be shipped unseen.
func readLicenses(ctx context.Context, source string, programs []program) (licenses, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-json", "all")
	command.Dir = source
	command.Env = append(os.Environ(), "GOFLAGS=")
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	folders := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list the modules: %w", err)
		}
		folders[module.Path] = module.Dir
	}
	found := licenses{}
	for _, p := range programs {
		for _, module := range p.info.Deps {
			if _, ok := found[module.Path]; ok {
				continue
			}
			of, err := licensesIn(folders[module.Path], source)
			if err != nil {
				return nil, fmt.Errorf("module %s: %w", module.Path, err)
			}
			found[module.Path] = of
		}
	}
	return found, nil
}

// accepted are the licenses of what is shipped. Another one needs a person who reads it.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// licensesIn returns the SPDX identifiers of the license files of a module. A module of this checkout has the license of the whole.
func licensesIn(folder, source string) ([]string, error) {
	root, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(folder, root+string(filepath.Separator)) {
		folder = root
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read its folder: %w", err)
	}
	var of []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL {
				of = append(of, match.ID)
			}
		}
	}
	slices.Sort(of)
	of = slices.Compact(of)
	if len(of) == 0 {
		return nil, fmt.Errorf("no license is known by its text in %s", filepath.Base(folder))
	}
	for _, id := range of {
		if !slices.Contains(accepted, id) {
			return nil, fmt.Errorf("the license %s is not among those of what is shipped: %s", id, strings.Join(accepted, ", "))
		}
	}
	return of, nil
}

// sbom is the CycloneDX document of a program: the modules that it is made of, with versions, checksums and licenses.
func sbom(p program, of licenses, at time.Time) ([]byte, error) {
	main := component(p.info.Main, cdx.ComponentTypeApplication)
	main.Name, main.Version = p.name, p.version()
	main.Licenses = licenseChoice([]string{"Apache-2.0"})
	components := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + p.info.GoVersion, Type: cdx.ComponentTypeLibrary, Name: "std", Version: p.info.GoVersion,
		PackageURL: "pkg:golang/std@" + p.info.GoVersion, Licenses: licenseChoice([]string{"BSD-3-Clause"}),
	}}
	for _, module := range p.info.Deps {
		linked := *module
		if r := linked.Replace; r != nil && r.Sum == "" { // a folder of this checkout
			linked.Version, linked.Replace = p.version(), nil
		} else if r != nil {
			linked = *r
		}
		c := component(linked, cdx.ComponentTypeLibrary)
		c.Licenses = licenseChoice(of[module.Path])
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &main, Properties: &[]cdx.Property{
		{Name: "git:revision", Value: p.setting("vcs.revision")},
		{Name: "go:platform", Value: p.setting("GOOS") + "/" + p.setting("GOARCH")},
	}}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode the SBOM of %s: %w", p.name, err)
	}
	return out.Bytes(), nil
}

func component(module debug.Module, kind cdx.ComponentType) cdx.Component {
	url := "pkg:golang/" + module.Path
	if module.Version != "" {
		url += "@" + module.Version
	}
	c := cdx.Component{BOMRef: url, Type: kind, Name: module.Path, Version: module.Version, PackageURL: url}
	// Go's h1 is the base64 of a SHA-256 over the files of the module.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

func licenseChoice(ids []string) *cdx.Licenses {
	var choice cdx.Licenses
	for _, id := range ids {
		choice = append(choice, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &choice
}
