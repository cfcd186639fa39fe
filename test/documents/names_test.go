package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/gmsa/lint"
	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// The outputs of the programs are documented: every name in the source is in the reference.
func TestDocumentsName(t *testing.T) {
	for name, test := range map[string]struct {
		source, names, document string
		atLeast                 int
	}{
		"labels, annotations, keys": {"api/authentication/v1alpha1/wellknown.go", `(?m)^\t\w+ += "(.+)"$`, "labels-and-annotations.md", 15},
		"profiles: labels":          {"api/accounts/v1alpha1/wellknown.go", `(?m)^\t(?:Label|Annotation)\w+ += "(.+)"$`, "labels-and-annotations.md", 2},
		"Events":                    {"internal/delivery/*/*.go", `(?:Failure\{Cause: [\w.]+, Reason: |fail\(\w+, [\w.]+, |problem\{\{?|warn\(account, )"(\w+)"`, "events.md", 19},
		"causes of failures":        {"internal/delivery/failures/failures.go", `Cause += "(\w+)"`, "metrics-and-audit.md", 10},
		"reasons of renewals":       {"internal/delivery/renewal/decision.go", `Reason += "(\w+)"`, "metrics-and-audit.md", 9},
		"metrics of agent":          {"internal/delivery/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 7},
		"metrics of pods":           {"internal/delivery/selftokens/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 4},
		"metrics of registry":       {"internal/delivery/pullsecrets/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 4},
		"causes of registry":        {"internal/delivery/pullsecrets/metrics.go", `failures.Cause += "(\w+)"`, "metrics-and-audit.md", 2},
		"registry: policies":        {"deploy/options/registry.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 1},
		"metrics of webhook":        {"internal/admission/webhook/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 2},
		"metrics of node":           {"internal/node/csi/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 5},
		"causes of the node":        {"internal/node/csi/metrics.go", `codes\.\w+: "(\w+)"`, "metrics-and-audit.md", 8},
		"profiles: Events":          {"internal/profiles/*.go", `reason\w+ += "(\w+)"`, "events.md", 5},
		"profiles: metrics":         {"internal/profiles/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 1},
		"profiles: usernames":       {"internal/profile/username/decide.go", `\w+ += "(Username\w+)"`, "events.md", 5},
		"certificates: Events":      {"internal/certificates/keeper/events.go", `eventReason = "(\w+)"`, "events.md", 4},
		"profiles: pods":            {"internal/profiles/drift/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 5},
		"profiles: reasons":         {"internal/profiles/drift/status.go", `Reason\w+ += "(\w+)"`, "events.md", 5},
		"certificates: metrics":     {"internal/certificates/keeper/metrics.go", `"(credence_\w+)"`, "metrics-and-audit.md", 3},
		"certificates: policies":    {"deploy/options/certificates.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 1},
		"registration: policy":      {"deploy/options/registration.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 1},
		"reserved variables":        {"internal/target/*/*.go", `Name: "([A-Z][A-Z_]+)", Value`, "labels-and-annotations.md", 15},
		"policies":                  {"deploy/base/5*-guards.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 5},
		"accounts: policies":        {"deploy/base/70-account-use.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 6},
		"profiles: label":           {"api/accounts/v1alpha1/wellknown.go", `(?m)^\tLabelGuardedBy += "(.+)"$`, "labels-and-annotations.md", 1},
		"profiles: policies":        {"deploy/base/72-profile-guards.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 3},
		"gMSA: policy":              {"deploy/base/62-gmsa-guards.yaml", `(?m)^  policyName: (\S+)$`, "labels-and-annotations.md", 1},
		"gMSA: webhooks":            {"deploy/base/61-gmsa-webhooks.yaml", `(?m)^- name: (\S+)$`, "labels-and-annotations.md", 4},
		"gMSA: webhooks of flags":   {"deploy/options/*.yaml", `(?m)^- name: (\S+)$`, "labels-and-annotations.md", 5},
		"gMSA: annotations":         {"api/windows/v1/*.go", `Annotation\w+ += "([^"]+)"`, "labels-and-annotations.md", 4},
		"gMSA: metrics":             {"internal/app/webhook/gmsa.go", `"(credence_\w+)"`, "metrics-and-audit.md", 2},
	} {
		t.Run(name, func(t *testing.T) {
			document := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "docs", "reference", test.document)))(t)
			found := sourceNames(t, test.source, test.names)
			if len(found) < test.atLeast {
				t.Fatalf("found %d names only: %v", len(found), found)
			}
			for name := range found {
				if !regexp.MustCompile("[`= >]" + regexp.QuoteMeta(name) + "[`=, ]").Match(document) {
					t.Errorf("%s does not have %s", test.document, name)
				}
			}
		})
	}
}

// The rules by which credential specs are judged are those of the reference, in their order.
func TestDocumentsNameRules(t *testing.T) {
	document := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "docs", "reference", "gmsa.md")))(t)
	_, section, _ := strings.Cut(string(document), "\n## Rules of credential specs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (?:refused|warning|refused, or warning) \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, row[1])
	}
	if diff := cmp.Diff(lint.Rules(), listed); diff != "" {
		t.Errorf("rules (-code +reference):\n%s", diff)
	}
}

// A document that names a test names one that exists.
func TestDocumentsNameRealTests(t *testing.T) {
	declared := declaredTests(t)
	found := 0
	for _, path := range documents.All(t) {
		content := testkit.Need(os.ReadFile(path))(t)
		for _, match := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(content, -1) {
			found++
			if name := string(match[1]); declared[name] == 0 {
				t.Errorf("%s names the test %s, which there is not", path, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("the documents name %d tests only", found)
	}
}

// declaredTests counts the tests and fuzz targets of the repository, by name.
func declaredTests(t *testing.T) map[string]int {
	t.Helper()
	declared := map[string]int{}
	testkit.Must(t, filepath.WalkDir(documents.Repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(content, -1) {
			declared[string(match[1])]++
		}
		return err
	}))
	return declared
}

// The targets of make in documents must exist.
func TestDocumentsNameRealTargets(t *testing.T) {
	makefile := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "Makefile")))(t)
	target := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	found := 0
	for _, path := range documents.All(t) {
		content := testkit.Need(os.ReadFile(path))(t)
		for _, match := range target.FindAllSubmatch(content, -1) {
			found++
			if !regexp.MustCompile(`(?m)^` + string(match[1]) + `:`).Match(makefile) {
				t.Errorf("%s names make %s, which the Makefile does not have", path, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document names a make target")
	}
}

// Documents name the version of Kubernetes that versions.env has, wherever they name one of its minor. Pages with measured figures keep the
// version that was measured.
func TestDocumentsNameTheVersionOfKubernetes(t *testing.T) {
	want := testkit.Version(t, "KUBERNETES")
	minor := want[:strings.LastIndex(want, ".")]
	version, found := regexp.MustCompile(`\b`+regexp.QuoteMeta(minor)+`\.[0-9]+`), 0
	for _, path := range documents.All(t) {
		content := testkit.Need(os.ReadFile(path))(t)
		for _, name := range version.FindAllString(string(content), -1) {
			if found++; name != want && !strings.HasSuffix(path, "benchmarks.md") {
				t.Errorf("%s names Kubernetes %s, versions.env %s", path, name, want)
			}
		}
	}
	if found == 0 {
		t.Error("no document names the version of Kubernetes")
	}
}

// Links between documents lead somewhere.
func TestDocumentsLinkToFiles(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, path := range documents.All(t) {
		content := testkit.Need(os.ReadFile(path))(t)
		for _, match := range link.FindAllSubmatch(content, -1) {
			if to := string(match[1]); !strings.Contains(to, "://") {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
					t.Errorf("%s links to %s: %v", path, to, err)
				}
			}
		}
	}
}

func sourceNames(t *testing.T, pattern, expression string) map[string]bool {
	t.Helper()
	paths := testkit.Need(filepath.Glob(filepath.Join(documents.Repository, pattern)))(t)
	found := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		content := testkit.Need(os.ReadFile(path))(t)
		for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(string(content), -1) {
			found[match[1]] = true
		}
	}
	return found
}
