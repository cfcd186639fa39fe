package cri_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

func TestWindowsContainerUser(t *testing.T) {
	for name, test := range map[string]struct {
		asked *string
		image cri.ImageUser
		want  string
	}{
		"no user":           {},
		"of the image":      {image: cri.ImageUser{Name: "ContainerUser"}, want: "ContainerUser"},
		"asked for":         {asked: new(`CONTOSO\app`), want: `CONTOSO\app`},
		"asked for instead": {asked: new(`CONTOSO\app`), image: cri.ImageUser{Name: "ContainerUser"}, want: `CONTOSO\app`},
		"empty":             {asked: new(""), image: cri.ImageUser{Name: "ContainerUser"}, want: "ContainerUser"},
		"a number":          {image: cri.ImageUser{UID: new(int64(1000))}},
	} {
		message, err := cri.WindowsContainer(cri.Container{Name: "web", Image: test.image, Effective: &corev1.SecurityContext{
			WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: test.asked},
		}})
		if err != nil || message.GetRunAsUsername() != test.want {
			t.Errorf("%s: %v, %v, want %q", name, message, err, test.want)
		}
	}
	if message, err := cri.WindowsContainer(cri.Container{Name: "web"}); err != nil || message.GetRunAsUsername() != "" {
		t.Errorf("without a security context: %v, %v", message, err)
	}
}

func TestCredentialSpecWithoutContents(t *testing.T) {
	for name, contents := range map[string]*string{"none": nil, "empty": new("")} {
		options := &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("webapp01"), GMSACredentialSpec: contents}
		container, err := cri.WindowsContainer(cri.Container{Name: "web", Effective: &corev1.SecurityContext{WindowsOptions: options}})
		mustRefuse(t, container == nil, err, `container "web" names the GMSACredentialSpec "webapp01"`, "create the pod anew")
		sandbox, err := cri.WindowsSandbox(&corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{WindowsOptions: options}}, ownOnly)
		if mustRefuse(t, sandbox == nil, err, `the pod names the GMSACredentialSpec "webapp01"`, "create the pod anew"); t.Failed() {
			t.Errorf("contents: %s", name)
		}
	}
	options := &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new(""), GMSACredentialSpec: new("")}
	if message, err := cri.WindowsContainer(cri.Container{Name: "web", Effective: &corev1.SecurityContext{WindowsOptions: options}}); err != nil || message.GetCredentialSpec() != "" {
		t.Errorf("neither name nor contents: %v, %v", message, err)
	}
}

// ownOnly is enough where the pod has no context of its own to give.
func ownOnly(_ *corev1.PodSecurityContext, container *corev1.SecurityContext) *corev1.SecurityContext {
	if container == nil {
		return &corev1.SecurityContext{}
	}
	return container
}

func TestHostProcessSandbox(t *testing.T) {
	yes := &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
	no := &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(false)}}
	for name, test := range map[string]struct {
		init, regular, ephemeral *corev1.SecurityContext
		pod                      *bool
		hostNetwork              bool
		want                     bool
		refused                  []string
	}{
		"none":                          {},
		"none, explicitly":              {init: no, regular: no, ephemeral: no, pod: new(false)},
		"all":                           {init: yes, regular: yes, ephemeral: yes, hostNetwork: true, want: true},
		"all, and the pod":              {init: yes, regular: yes, ephemeral: yes, pod: new(true), hostNetwork: true, want: true},
		"not the init container":        {regular: yes, ephemeral: yes, hostNetwork: true, refused: []string{"both HostProcess containers (web, debug) and others (setup)"}},
		"not the regular one":           {init: yes, regular: no, ephemeral: yes, hostNetwork: true, refused: []string{"both HostProcess containers (setup, debug) and others (web)"}},
		"not the ephemeral one":         {init: yes, regular: yes, hostNetwork: true, refused: []string{"both HostProcess containers (setup, web) and others (debug)", "for the whole pod, or for none"}},
		"some, and not host's network":  {init: yes, refused: []string{"both HostProcess containers"}},
		"all, but not host's network":   {init: yes, regular: yes, ephemeral: yes, refused: []string{"HostProcess containers (setup, web, debug)", "set spec.hostNetwork to true"}},
		"all, but not by the pod":       {init: yes, regular: yes, ephemeral: yes, pod: new(false), hostNetwork: true, refused: []string{"windowsOptions.hostProcess is false for the pod", "set it to true"}},
		"none, in the host's network":   {hostNetwork: true},
		"none, though the pod might be": {init: no, regular: no, ephemeral: no, pod: new(true), hostNetwork: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.PodSpec{
				HostNetwork:         test.hostNetwork,
				InitContainers:      []corev1.Container{{Name: "setup", SecurityContext: test.init}},
				Containers:          []corev1.Container{{Name: "web", SecurityContext: test.regular}},
				EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", SecurityContext: test.ephemeral}}},
			}
			if test.pod != nil {
				pod.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: test.pod}}
			}
			message, err := cri.WindowsSandbox(pod, ownOnly)
			mustRefuse(t, message == nil, err, append(test.refused, "")...)
			if err == nil && message.GetHostProcess() != test.want {
				t.Errorf("hostProcess of the sandbox is %v, want %v", message.GetHostProcess(), test.want)
			}
		})
	}
}

func TestErrorsDoNotRepeatContents(t *testing.T) {
	_, err := cri.WindowsContainer(cri.Container{Name: "web", Effective: &corev1.SecurityContext{
		RunAsNonRoot: new(true),
		WindowsOptions: &corev1.WindowsSecurityContextOptions{
			GMSACredentialSpecName: new("webapp01"), GMSACredentialSpec: new("PluginInput"), RunAsUserName: new("ContainerAdministrator"),
		},
	}})
	if err == nil || strings.Contains(err.Error(), "PluginInput") {
		t.Errorf("got %v", err)
	}
}
