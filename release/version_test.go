package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPublishedRelease shows that programs have the version of their release.
func TestInvalidVersions(t *testing.T) {
	source := t.TempDir()
	for _, arguments := range [][]string{
		{"init", "--quiet"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message", "one"},
		{"tag", "v0.1.0"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message", "two"},
		{"tag", "v0.2.0"},
	} {
		if _, err := git(t.Context(), source, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for version, want := range map[string]string{
		"0.1.0":  "invalid version",
		"v1":     "invalid version",
		"v2.0.0": "invalid version", // the path of the module would end in /v2
		"latest": "invalid version",
		"v0.1.0": "v0.1.0 is the version of commit ",
	} {
		if folder, err := tagged(t.Context(), source, version, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want an error with %q", version, folder, err, want)
		}
	}
	for _, version := range []string{"v0.2.0", "v0.3.0-rc.1"} {
		folder, err := tagged(t.Context(), source, version, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if tags, err := git(t.Context(), folder, "tag", "--points-at", "HEAD"); err != nil || tags != version {
			t.Errorf("the commit of %s has the tags %q, %v", version, tags, err)
		}
	}
	if folder, err := tagged(t.Context(), source, "", t.TempDir()); err != nil || folder != source {
		t.Errorf("without a version: %q, %v", folder, err)
	}
}

func TestModuleWithoutFile(t *testing.T) {
	printed, err := exec.Command(checkout+"/hack/release.sh", "v0.1.0", "nomodule").CombinedOutput()
	if err == nil || !strings.Contains(string(printed), "there is no nomodule/go.mod") {
		t.Errorf("release.sh for a module without go.mod: %v\n%s", err, printed)
	}
}

// make release and make images work without a VERSION, and pass one on.
func TestMakeRelease(t *testing.T) {
	for _, target := range []string{"images", "release"} {
		for _, version := range []string{"", "v1.2.3"} {
			command := exec.Command("make", "--no-print-directory", "--dry-run", "-C", checkout, target, "VERSION="+version)
			command.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=")
			printed, err := command.CombinedOutput()
			if err != nil || strings.Contains(string(printed), "--version v1.2.3") != (version != "") {
				t.Errorf("make %s VERSION=%s: %v\n%s", target, version, err, printed)
			}
			if strings.Contains(string(printed), "hack/release.sh") != (target == "release" && version != "") {
				t.Errorf("make %s VERSION=%s shows the go.mod of a release, or does not:\n%s", target, version, printed)
			}
		}
	}
}
