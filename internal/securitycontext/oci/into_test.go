package oci_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
	"github.com/credence-id/credence/internal/securitycontext/oci"
)

// hcsshim takes a credential spec that is a string, and nothing else; it gets the specification as JSON.
func TestCredentialSpecIsAString(t *testing.T) {
	contents := `{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{"MachineAccountName":"W<b>"}}`
	var spec specs.Spec
	oci.Windows{CredentialSpec: contents}.Into(&spec)
	written, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var got specs.Spec
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}
	if read, ok := got.Windows.CredentialSpec.(string); !ok || read != contents {
		t.Errorf("hcsshim reads %T %v, want the string %s", got.Windows.CredentialSpec, got.Windows.CredentialSpec, contents)
	}
}

func TestWindowsLeavesNothingOfOthers(t *testing.T) {
	spec := specs.Spec{
		Hostname:    "web",
		Process:     &specs.Process{Args: []string{"web.exe"}, Cwd: `C:\`, User: specs.User{Username: "ContainerAdministrator"}},
		Windows:     &specs.Windows{LayerFolders: []string{`C:\layers\1`}, CredentialSpec: `{"of":"another"}`},
		Annotations: map[string]string{oci.HostProcessAnnotation: "true", "orchard.example/note": "kept"},
	}
	want := specs.Spec{
		Hostname:    "web",
		Process:     &specs.Process{Args: []string{"web.exe"}, Cwd: `C:\`},
		Windows:     &specs.Windows{LayerFolders: []string{`C:\layers\1`}},
		Annotations: map[string]string{oci.HostProcessAnnotation: "false", "orchard.example/note": "kept"},
	}
	oci.Windows{}.Into(&spec)
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
}

func TestLinuxIntoAnything(t *testing.T) {
	linux := oci.Linux{
		User: &specs.User{UID: 1000, GID: 3000}, NoNewPrivileges: true, ReadonlyRoot: true,
		MaskedPaths: []string{"/proc/kcore"}, ReadonlyPaths: []string{"/proc/sys"},
	}
	var empty specs.Spec
	full := specs.Spec{
		Process: &specs.Process{Cwd: "/", User: specs.User{UID: 5, GID: 5, AdditionalGids: []uint32{6}}},
		Root:    &specs.Root{Path: "rootfs"},
		Linux:   &specs.Linux{MaskedPaths: []string{"/x"}, ReadonlyPaths: []string{"/y"}, CgroupsPath: "kept"},
	}
	linux.Into(&empty)
	linux.Into(&full)
	for name, spec := range map[string]specs.Spec{"empty": empty, "full": full} {
		if diff := cmp.Diff(*linux.User, spec.Process.User); diff != "" {
			t.Errorf("%s: user (-want +got):\n%s", name, diff)
		}
		if !spec.Process.NoNewPrivileges || !spec.Root.Readonly {
			t.Errorf("%s: %+v, %+v", name, spec.Process, spec.Root)
		}
		if diff := cmp.Diff([][]string{linux.MaskedPaths, linux.ReadonlyPaths}, [][]string{spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths}); diff != "" {
			t.Errorf("%s: paths (-want +got):\n%s", name, diff)
		}
	}
	if full.Process.Cwd != "/" || full.Root.Path != "rootfs" || full.Linux.CgroupsPath != "kept" {
		t.Errorf("fields outside the security context were changed: %+v", full)
	}
	oci.Linux{}.Into(&full)
	if full.Process.User.UID != 1000 || full.Process.NoNewPrivileges || full.Root.Readonly || len(full.Linux.MaskedPaths)+len(full.Linux.ReadonlyPaths) > 0 {
		t.Errorf("without anything, and a user that the runtime looks up: %+v, %+v, %+v", full.Process, full.Root, full.Linux)
	}
}

func TestLinuxUser(t *testing.T) {
	for name, test := range map[string]struct {
		uid, gid *int64
		groups   []int64
		image    cri.ImageUser
		want     *specs.User
		refused  bool
	}{
		"both":                       {uid: new(int64(1000)), gid: new(int64(3000)), groups: []int64{2000}, want: &specs.User{UID: 1000, GID: 3000, AdditionalGids: []uint32{2000}}},
		"root":                       {uid: new(int64(0)), gid: new(int64(0)), want: &specs.User{}},
		"greatest":                   {uid: new(int64(math.MaxUint32)), gid: new(int64(1)), want: &specs.User{UID: math.MaxUint32, GID: 1}},
		"group is of the image":      {uid: new(int64(1000))},
		"number is of the image":     {gid: new(int64(3000)), image: cri.ImageUser{UID: new(int64(5))}, want: &specs.User{UID: 5, GID: 3000}},
		"user is of the image":       {gid: new(int64(3000)), image: cri.ImageUser{Name: "app"}},
		"user that there cannot be":  {uid: new(int64(math.MaxUint32 + 1)), gid: new(int64(1)), refused: true},
		"group that there cannot be": {uid: new(int64(1)), gid: new(int64(-1)), refused: true},
		"further group likewise":     {uid: new(int64(1)), gid: new(int64(1)), groups: []int64{-5}, refused: true},
	} {
		pod := &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: test.groups}}
		got, err := oci.LinuxContainer(pod, cri.Container{Name: "web", Image: test.image, Effective: &corev1.SecurityContext{RunAsUser: test.uid, RunAsGroup: test.gid}}, cri.Node{})
		if test.refused != (err != nil) || test.refused && !strings.Contains(err.Error(), `container "web"`) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got.User, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
