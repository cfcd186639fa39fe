package cri_test

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

func TestRunAsNonRootOnWindows(t *testing.T) {
	for name, test := range map[string]struct {
		runAsUserName *string
		image         string
		refused       string // as the error names it
	}{
		"nothing is known":                      {},
		"an ordinary user":                      {runAsUserName: new("ContainerUser")},
		"an ordinary user of the image":         {image: "ContainerUser"},
		"administrator asked for":               {runAsUserName: new("ContainerAdministrator"), refused: `runAsUserName is "ContainerAdministrator"`},
		"administrator in another case":         {runAsUserName: new("cONTAINERaDMINISTRATOR"), refused: `runAsUserName is "cONTAINERaDMINISTRATOR"`},
		"administrator with its domain":         {runAsUserName: new(`User Manager\ContainerAdministrator`), refused: `runAsUserName is "User Manager\\ContainerAdministrator"`},
		"administrator of the image":            {image: "ContainerAdministrator", refused: `image runs as "ContainerAdministrator"`},
		"administrator of the image, case":      {image: `USER MANAGER\CONTAINERADMINISTRATOR`, refused: `image runs as "USER MANAGER\\CONTAINERADMINISTRATOR"`},
		"another user than the image's":         {runAsUserName: new("ContainerUser"), image: "ContainerAdministrator"},
		"no user, before the image's":           {runAsUserName: new(""), image: "ContainerAdministrator", refused: `image runs as "ContainerAdministrator"`},
		"administrator over the image's":        {runAsUserName: new("containeradministrator"), image: "ContainerUser", refused: `runAsUserName is "containeradministrator"`},
		"a name that only begins like it":       {runAsUserName: new("ContainerAdministrators")},
		"a domain that is called like it":       {runAsUserName: new(`ContainerAdministrator\app`)},
		"administrator of something else there": {runAsUserName: new(`CONTOSO\Administrator`)},
	} {
		t.Run(name, func(t *testing.T) {
			effective := &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: test.runAsUserName}}
			c := cri.Container{Name: "web", Effective: effective, Image: cri.ImageUser{Name: test.image}}
			if _, err := cri.WindowsContainer(c); err != nil {
				t.Errorf("without runAsNonRoot: %v", err)
			}
			effective.RunAsNonRoot = new(false)
			if _, err := cri.WindowsContainer(c); err != nil {
				t.Errorf("with runAsNonRoot false: %v", err)
			}
			effective.RunAsNonRoot = new(true)
			message, err := cri.WindowsContainer(c)
			mustRefuse(t, message == nil, err, test.refused, `container "web"`, "set windowsOptions.runAsUserName")
		})
	}
}

func TestRunAsNonRootOnLinux(t *testing.T) {
	for name, test := range map[string]struct {
		runAsUser *int64
		image     cri.ImageUser
		refused   string
	}{
		"asked for":                        {runAsUser: new(int64(1000))},
		"asked for over root of the image": {runAsUser: new(int64(1000)), image: cri.ImageUser{UID: new(int64(0))}},
		"asked for over a word":            {runAsUser: new(int64(1000)), image: cri.ImageUser{Name: "root"}},
		"root asked for":                   {runAsUser: new(int64(0)), image: cri.ImageUser{UID: new(int64(1000))}, refused: "runAsUser is 0"},
		"number of the image":              {image: cri.ImageUser{UID: new(int64(65532))}},
		"greatest number":                  {image: cri.ImageUser{UID: new(int64(math.MaxInt32))}},
		"root of the image":                {image: cri.ImageUser{UID: new(int64(0))}, refused: "image runs as 0"},
		"image without a user":             {refused: "image names no user"},
		"word of the image":                {image: cri.ImageUser{Name: "app"}, refused: `image runs as "app"`},
		"word of the image that is root":   {image: cri.ImageUser{Name: "root"}, refused: `image runs as "root"`},
		"below all numbers":                {image: cri.ImageUser{UID: new(int64(-1))}, refused: "image runs as -1"},
		"above all numbers":                {image: cri.ImageUser{UID: new(int64(math.MaxInt32 + 1))}, refused: "image runs as 2147483648"},
	} {
		t.Run(name, func(t *testing.T) {
			effective := &corev1.SecurityContext{RunAsUser: test.runAsUser}
			c := cri.Container{Name: "web", Effective: effective, Image: test.image}
			if _, err := cri.LinuxContainer(&corev1.PodSpec{}, c, cri.Node{}); err != nil {
				t.Errorf("without runAsNonRoot: %v", err)
			}
			effective.RunAsNonRoot = new(true)
			message, err := cri.LinuxContainer(&corev1.PodSpec{}, c, cri.Node{})
			mustRefuse(t, message == nil, err, test.refused, `container "web"`, "set runAsUser to a number above 0")
		})
	}
}

// mustRefuse wants an error with all of these parts; or none, if the first part is empty.
func mustRefuse(t *testing.T, empty bool, err error, parts ...string) {
	t.Helper()
	if parts[0] == "" {
		if err != nil || empty {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil || !empty {
		t.Fatalf("got %v, want no message, and an error with %q", err, parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func TestImageUserOf(t *testing.T) {
	for name, test := range map[string]struct {
		image *runtime.Image
		uid   *int64
		user  string
	}{
		"no image":          {},
		"no user":           {image: &runtime.Image{}},
		"a number":          {image: &runtime.Image{Uid: &runtime.Int64Value{Value: 1000}}, uid: new(int64(1000))},
		"root":              {image: &runtime.Image{Uid: &runtime.Int64Value{}}, uid: new(int64(0))},
		"a word":            {image: &runtime.Image{Username: "app"}, user: "app"},
		"a number and word": {image: &runtime.Image{Uid: &runtime.Int64Value{Value: 1000}, Username: "app"}, uid: new(int64(1000))},
	} {
		got := cri.ImageUserOf(test.image)
		if got.Name != test.user || (got.UID == nil) != (test.uid == nil) || got.UID != nil && *got.UID != *test.uid {
			t.Errorf("%s: %+v, want %v, %q", name, got, test.uid, test.user)
		}
	}
}
