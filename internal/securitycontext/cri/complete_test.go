package cri_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/securitycontext"
)

// Every combination has a case.
func TestEveryCombinationHasACase(t *testing.T) {
	for _, system := range []string{"linux", "windows"} {
		for _, account := range []string{"gmsa", "no-gmsa"} {
			for _, process := range []string{"hostprocess", "contained"} {
				for _, users := range []string{"nonroot", "any-user"} {
					checkCase(t, system, account, process, users)
				}
			}
		}
	}
}

func checkCase(t *testing.T, system, account, process, users string) {
	t.Helper()
	dir := filepath.Join("testdata", strings.Join([]string{system, account, process, users}, "-"))
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("%v: add pod.yaml and images.yaml there, and run this test with -update", err)
		return
	}
	pod, _ := load(t, dir)
	if isWindows(&pod.Spec) != (system == "windows") {
		t.Errorf("%s: the pod is not for %s", dir, system)
	}
	var want handover
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(dir, "want.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	for name, own := range contexts(&pod.Spec) {
		context := securitycontext.Effective(pod.Spec.SecurityContext, own)
		options := context.WindowsOptions
		has := options != nil && options.GMSACredentialSpec != nil
		if has != (account == "gmsa") {
			t.Errorf("%s: container %s is not %s", dir, name, account)
		}
		if host := options != nil && options.HostProcess != nil && *options.HostProcess; host != (process == "hostprocess") {
			t.Errorf("%s: container %s is not %s", dir, name, process)
		}
		if (context.RunAsNonRoot != nil && *context.RunAsNonRoot) != (users == "nonroot") {
			t.Errorf("%s: container %s is not %s", dir, name, users)
		}
		got := want.Containers[name]
		if got.Refused != "" || len(got.CRI) == 0 {
			t.Errorf("%s: container %s is refused", dir, name)
			continue
		}
		gets := strings.Contains(string(got.CRI), "credentialSpec")
		if gets != (account == "gmsa" && system == "windows") {
			t.Errorf("%s: container %s gets a credential spec: %v", dir, name, gets)
		}
	}
}
