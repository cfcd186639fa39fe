package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// platform is the only one that tests build for: the programs of others are compiled anew, which takes minutes.
const platform = "linux/amd64"

// checkout is that of the tests.
const checkout = ".."

// clone returns a clone of the commit that is checked out in a folder, so that what is not committed plays no part.
func clone(t *testing.T, of string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "checkout")
	if output, err := exec.Command("git", "clone", "--quiet", of, folder).CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, output)
	}
	return folder
}

// testImages checks the images of a release.
func testImages(t *testing.T, source, out string) {
	index, err := layout.ImageIndexFromPath(filepath.Join(out, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if called := d.Annotations[refName]; called != "" && d.MediaType.IsIndex() {
			of, err := index.ImageIndex(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			each, err := of.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			if len(each.Manifests) != 1 || each.Manifests[0].Platform.String() != platform {
				t.Fatalf("%s is for %v", called, each.Manifests)
			}
			name, _, _ := strings.Cut(called, ":")
			if images[name], err = of.Image(each.Manifests[0].Digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(images) != len(descriptions) {
		t.Fatalf("%d images, want %d", len(images), len(descriptions))
	}

	var total int64
	for name, made := range images {
		size, _, err := measure(made)
		if err != nil {
			t.Fatal(err)
		}
		total += size
		file, err := made.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if file.Config.User != "65532:65532" {
			t.Errorf("%s runs as %q", name, file.Config.User)
		}
		if revision := file.Config.Labels["org.opencontainers.image.revision"]; revision != head(t, source) {
			t.Errorf("%s has the revision %q in its labels", name, revision)
		}
		files := contents(t, made)
		want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/" + name}
		var have []string
		for file := range files {
			have = append(have, file)
		}
		if slices.Sort(have); !slices.Equal(have, want) {
			t.Errorf("%s has the files %q, want %q", name, have, want)
		}
		if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) || strings.Count(string(files["etc/ssl/certs/ca-certificates.crt"]), "BEGIN CERTIFICATE") < 100 {
			t.Errorf("%s has no list of certificate authorities", name)
		}

		// The program of the image runs, and names its commit.
		program := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(program, files["usr/local/bin/"+name], 0o755); err != nil {
			t.Fatal(err)
		}
		version, err := exec.Command(program, "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(version), head(t, source)[:12]) {
			t.Errorf("%s --version: %v: %s", name, err, version)
		}
	}
	if total > 100e6 {
		t.Errorf("the images have %d bytes together, want at most 100 MB", total)
	}

	inRegistryOfLibrary(t, out, images)

	// Each SBOM refers to its image, and has a version and a license of every module.
	for name := range images {
		var document cdx.BOM
		if err := json.Unmarshal(read(t, out, name+"_linux_amd64.cdx.json"), &document); err != nil {
			t.Fatal(err)
		}
		if n := len(*document.Components); n < 10 {
			t.Errorf("the SBOM of %s has %d components", name, n)
		}
		for _, c := range *document.Components {
			if c.Licenses == nil || len(*c.Licenses) == 0 || !regexp.MustCompile(`^(v[0-9]|go1)`).MatchString(c.Version) {
				t.Errorf("the SBOM of %s has no license of %s, or the version %q", name, c.Name, c.Version)
			}
			if c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || c.Name != "std" && !regexp.MustCompile(`^[a-z0-9.-]+\.[a-z]+/`).MatchString(c.Name) {
				t.Errorf("the SBOM of %s names %s by %s", name, c.Name, c.PackageURL)
			}
		}
	}
}

// testArchives checks the archives and the chart of a release. The programs run where there is neither a checkout nor git.
func testArchives(t *testing.T, source, out string) {
	archives := map[string]map[string][]byte{} // the files of each
	for line := range strings.Lines(string(read(t, out, checksumsFile))) {
		sum, called, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data := read(t, out, called)
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s has the checksum %s, want %s", called, got, sum)
		}
		if !strings.HasSuffix(called, "gz") {
			continue
		}
		compressed, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		archives[called] = files(t, compressed)
	}
	if len(archives) != 3 {
		t.Fatalf("checksums.txt has %q, want an archive of clients, one of a kubelet's program, and the chart", slices.Sorted(maps.Keys(archives)))
	}
	for called, of := range archives {
		if strings.HasPrefix(called, "credence-image-credentials_") {
			ofKubelet(t, called, of)
			continue
		}
		if strings.HasPrefix(called, "credence-") {
			version := strings.TrimSuffix(strings.TrimPrefix(called, "credence-"), ".tgz")
			for _, line := range []string{`version: "` + version + `"`, `appVersion: "v` + version + `"`} {
				if !strings.Contains(string(of["credence/Chart.yaml"]), line+"\n") {
					t.Errorf("Chart.yaml does not have %s:\n%s", line, of["credence/Chart.yaml"])
				}
			}
			for _, file := range []string{"credence/values.yaml", "credence/templates/deployments.yaml", "credence/files/base/30-apiserver.yaml"} {
				if len(of[file]) == 0 {
					t.Errorf("the chart has no %s", file)
				}
			}
			continue
		}
		if want := []string{"LICENSE", "credence", "credence-credential", "credence-credential.cdx.json", "credence.cdx.json"}; !slices.Equal(slices.Sorted(maps.Keys(of)), want) {
			t.Errorf("%s has the files %q, want %q", called, slices.Sorted(maps.Keys(of)), want)
		}
		empty := t.TempDir()
		program := filepath.Join(empty, "credence")
		if err := os.WriteFile(program, of["credence"], 0o755); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(program, "version", "-o", "json")
		command.Dir, command.Env = empty, []string{"HOME=" + empty, "PATH="}
		printed, err := command.CombinedOutput()
		var version struct{ Version, Revision string }
		if err := errors.Join(err, json.Unmarshal(printed, &version)); err != nil {
			t.Fatalf("credence version: %v: %s", err, printed)
		}
		if version.Revision != head(t, source) || version.Version != released || "credence_"+version.Version+"_linux_amd64.tar.gz" != called {
			t.Errorf("credence version of %s prints %s", called, printed)
		}
	}
}

// ofKubelet checks the archive of the program that a kubelet runs, and runs it where there is nothing else.
func ofKubelet(t *testing.T, called string, of map[string][]byte) {
	t.Helper()
	if want := []string{"LICENSE", "credence-image-credentials", "credence-image-credentials.cdx.json"}; !slices.Equal(slices.Sorted(maps.Keys(of)), want) {
		t.Errorf("%s has the files %q, want %q", called, slices.Sorted(maps.Keys(of)), want)
	}
	folder := t.TempDir()
	program := filepath.Join(folder, "credence-image-credentials")
	if err := os.WriteFile(program, of["credence-image-credentials"], 0o755); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"install", "--to", filepath.Join(folder, "providers")}, {"--version"}} {
		command := exec.Command(program, arguments...)
		command.Dir, command.Env = folder, []string{"PATH="}
		printed, err := command.CombinedOutput()
		if err != nil || arguments[0] == "--version" && !strings.Contains(called, "_"+strings.Fields(string(printed))[1]+"_linux_") {
			t.Errorf("%s of %s: %v: %s", arguments[0], called, err, printed)
		}
		program = filepath.Join(folder, "providers", "credence-image-credentials")
	}
}

func TestBuildOutsideACheckout(t *testing.T) {
	source := clone(t, checkout)
	if err := os.RemoveAll(filepath.Join(source, ".git")); err != nil {
		t.Fatal(err)
	}
	err := makeImages(t.Context(), io.Discard, source, t.TempDir(), t.TempDir(), []string{platform})
	if err == nil || !strings.Contains(err.Error(), "do not name their commit") {
		t.Errorf("images without a commit: %v", err)
	}
	for _, invalid := range []string{"linux", "linux/", "/amd64", "linux/arm/v7", ""} {
		if err := makeImages(t.Context(), io.Discard, source, t.TempDir(), t.TempDir(), []string{invalid}); err == nil || !strings.Contains(err.Error(), "invalid platform") {
			t.Errorf("platform %q: %v", invalid, err)
		}
	}
}

// inRegistryOfLibrary pushes to a registry that lists referrers, and finds there what was pushed.
func inRegistryOfLibrary(t *testing.T, out string, images map[string]v1.Image) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/credence-id"
	var progress bytes.Buffer
	if err := pushImages(t.Context(), &progress, out, at); err != nil {
		t.Fatal(err)
	}
	for called, made := range images {
		want, err := made.Digest()
		if err != nil {
			t.Fatal(err)
		}
		repository, err := name.NewRepository(at + "/" + called)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Image(repository.Digest(want.String())); err != nil {
			t.Errorf("pull %s: %v", called, err)
		}
		referrers, err := remote.Referrers(repository.Digest(want.String()))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Manifests) != 1 {
			t.Fatalf("what refers to %s: %+v, want its SBOM", called, manifest.Manifests)
		}
		found, err := remote.Image(repository.Digest(manifest.Manifests[0].Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		if of, err := found.Manifest(); err != nil || of.ArtifactType != sbomMediaType {
			t.Errorf("what refers to %s is %+v, %v, want its SBOM", called, of, err)
		}
	}
	if err := pushImages(t.Context(), io.Discard, t.TempDir(), at); err == nil || !strings.Contains(err.Error(), "make images") {
		t.Errorf("push of nothing: %v", err)
	}
}

func contents(t *testing.T, made v1.Image) map[string][]byte {
	t.Helper()
	extracted := mutate.Extract(made)
	defer extracted.Close()
	return files(t, extracted)
}

// files returns the files of a tar archive, by name.
func files(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func read(t *testing.T, out, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(out, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// head is the commit of a clone: in the checkout, another one may follow while a test runs.
func head(t *testing.T, source string) string {
	t.Helper()
	commit, err := git(t.Context(), source, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return commit
}
