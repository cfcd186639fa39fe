package install

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// The chart of a release is what Helm itself would package, with the version of the programs, whose tag its images have.
func TestReleasedChart(t *testing.T) {
	folder := t.TempDir()
	checkout, out := filepath.Join(folder, "checkout"), filepath.Join(folder, "out")
	for _, command := range []*exec.Cmd{
		exec.Command("git", "clone", "--quiet", documents.Repository, checkout),
		exec.Command("go", "-C", filepath.Join(checkout, "release"), "run", ".", "archives", "--source", checkout, "--out", out, "--platform", "linux/amd64"),
	} {
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, output)
		}
	}
	ours, err := filepath.Glob(filepath.Join(out, "credence-*.tgz"))
	if err != nil || len(ours) != 1 {
		t.Fatalf("charts: %v, %v", ours, err)
	}
	version := regexp.MustCompile(`^credence-(.*)\.tgz$`).FindStringSubmatch(filepath.Base(ours[0]))[1]
	if stdout, stderr, err := helm(t, "", "package", filepath.Join(checkout, "deploy", "chart", "credence"), "--version", version, "--app-version", "v"+version, "--destination", folder); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var rendered []string
	for _, chart := range []string{filepath.Join(folder, "credence-"+version+".tgz"), ours[0]} {
		stdout, stderr, err := helm(t, "", "template", "credence", chart, "--namespace", "credence-system", "--kube-version", testkit.Version(t, "KUBERNETES"), "--set", "issuer=https://id.example.com")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		rendered = append(rendered, stdout)
	}
	if diff := cmp.Diff(rendered[0], rendered[1]); diff != "" {
		t.Errorf("objects (-packaged by Helm +of the release):\n%s", diff)
	}
	if !regexp.MustCompile(`image: "[^"]*/credence-server:v` + regexp.QuoteMeta(version) + `"`).MatchString(rendered[1]) {
		t.Errorf("the images do not have the tag v%s", version)
	}
}
