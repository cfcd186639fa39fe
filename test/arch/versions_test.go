package arch_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// ownVersions are modules that may state other versions than the rest, and why.
var ownVersions = map[string]string{
	"api":                     "importers have other versions: it states the lowest that work",
	"execcredential":          "as api",
	"execcredential/clientgo": "as api",
	"test/tools/argocd":       "gitops-engine needs kinds of autoscaling that k8s.io/api has no longer since 0.36; its program is built by itself",
	"test/sdk/minio":          "a program that shares little with the others, and whose newest version wants old ones",
	"test/release/cosign":     "a program that checks our release, with the versions of its authors",
	"test/release/krew":       "as cosign",
	"test/workflows":          "a linter with the versions of its authors",
}

// otherVersion are versions that one module needs and the others must not have, and why.
var otherVersion = map[string]string{
	"test/install/certmanager github.com/google/cel-go v0.30.0": "kube-apiserver and our policies are built with the version that Kubernetes has",
}

// versions returns, of each module that is required, which folders state which version of it.
func versions(required map[string]map[string]string) map[string]map[string][]string {
	stated := map[string]map[string][]string{}
	for _, folder := range slices.Sorted(maps.Keys(required)) {
		for path, version := range required[folder] {
			if ownVersions[folder] != "" || otherVersion[folder+" "+path+" "+version] != "" {
				continue
			}
			if stated[path] == nil {
				stated[path] = map[string][]string{}
			}
			stated[path][version] = append(stated[path][version], folder)
		}
	}
	return stated
}

// goMod is a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

func readModule(t *testing.T, file string) goMod {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join("../..", file)).Output()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var mod goMod
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return mod
}

// A package of another module can be imported only where go.mod has that module.
func TestDevclusterImportsNothingOfCredence(t *testing.T) {
	mod := readModule(t, "devcluster/go.mod")
	if len(mod.Require) == 0 {
		t.Error("devcluster requires no module")
	}
	for _, each := range mod.Require {
		if each.Path == module || strings.HasPrefix(each.Path, module+"/") {
			t.Errorf("devcluster requires %s: it must build without Credence", each.Path)
		}
	}
}

// requiredVersions returns the version of each module that a go.mod requires and does not replace, by folder.
func requiredVersions(t *testing.T) map[string]map[string]string {
	t.Helper()
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]map[string]string{}
	for _, file := range strings.Fields(string(out)) {
		mod, folder := readModule(t, file), filepath.Dir(file)
		required[folder] = map[string]string{}
		for _, each := range mod.Require {
			required[folder][each.Path] = each.Version
		}
		for _, each := range mod.Replace {
			delete(required[folder], each.Old.Path)
		}
	}
	return required
}

// A module in two versions is compiled twice, with all that imports it: of Kubernetes' libraries, which import hundreds, that takes minutes.
func TestModulesHaveOneVersion(t *testing.T) {
	required := requiredVersions(t)
	for folder := range ownVersions {
		if required[folder] == nil {
			t.Errorf("%s has no go.mod, and is in ownVersions", folder)
		}
	}
	for exception := range otherVersion {
		if word := strings.Fields(exception); required[word[0]][word[1]] != word[2] {
			t.Errorf("the exception %q is not needed", exception)
		}
	}
	for path, folders := range versions(required) {
		if len(folders) > 1 {
			t.Errorf("%s has several versions: %v; take the newest in all, by go mod edit -require=%s@VERSION and go mod tidy in each", path, folders, path)
		}
	}
}

// sharedVersions are the modules whose version versions.env has, by its name there.
var sharedVersions = map[string]*regexp.Regexp{
	"KUBERNETES":           regexp.MustCompile(`^k8s\.io/kubernetes$`),
	"KUBERNETES_LIBRARIES": regexp.MustCompile(`^k8s\.io/(api|apimachinery|apiserver|client-go|component-base|kubelet)$`),
	"ETCD":                 regexp.MustCompile(`^go\.etcd\.io/etcd/(server|client)/v3$`),
	"HELM":                 regexp.MustCompile(`^helm\.sh/helm/v4$`),
	"HELM3":                regexp.MustCompile(`^helm\.sh/helm/v3$`),
	"CERT_MANAGER":         regexp.MustCompile(`^github\.com/cert-manager/cert-manager$`),
	"PROMETHEUS":           regexp.MustCompile(`^github\.com/prometheus/prometheus$`),
	"REGISTRY":             regexp.MustCompile(`^github\.com/distribution/distribution/v3$`),
	"MINIO":                regexp.MustCompile(`^github\.com/minio/minio$`),
	"COSIGN":               regexp.MustCompile(`^github\.com/sigstore/cosign/v3$`),
	"KREW":                 regexp.MustCompile(`^sigs\.k8s\.io/krew$`),
	"ACTIONLINT":           regexp.MustCompile(`^github\.com/rhysd/actionlint$`),
}

// ownFolders are the folders among ownVersions of what versions.env has.
var ownFolders = map[string]string{
	"MINIO": "test/sdk/minio", "COSIGN": "test/release/cosign", "KREW": "test/release/krew", "ACTIONLINT": "test/workflows",
}

// versions.env is right about every go.mod, and about the Go that they need.
func TestSharedVersions(t *testing.T) {
	required := requiredVersions(t)
	if mod := readModule(t, "go.mod"); mod.Go != testkit.Version(t, "GO")+".0" {
		t.Errorf("go.mod states Go %s, versions.env %s", mod.Go, testkit.Version(t, "GO"))
	}
	for name, path := range sharedVersions {
		want, found := testkit.Version(t, name), 0
		for folder, versions := range required {
			for module, version := range versions {
				if !path.MatchString(module) || ownVersions[folder] != "" && ownFolders[name] != folder {
					continue
				}
				if found++; version != want {
					t.Errorf("%s/go.mod requires %s %s, versions.env has %s=%s", folder, module, version, name, want)
				}
			}
		}
		if found == 0 {
			t.Errorf("no go.mod requires what versions.env has as %s", name)
		}
	}
}

func TestVersionsDiffer(t *testing.T) {
	stated := versions(map[string]map[string]string{
		".": {"a": "v1.0.0", "b": "v1.0.0"}, "test": {"a": "v1.1.0", "b": "v1.0.0"}, "api": {"b": "v0.1.0"},
		"test/install/certmanager": {"github.com/google/cel-go": "v0.30.0"},
	})
	if len(stated) != 2 || len(stated["a"]) != 2 || len(stated["b"]) != 1 {
		t.Errorf("versions: %v, want two of a and one of b", stated)
	}
}
