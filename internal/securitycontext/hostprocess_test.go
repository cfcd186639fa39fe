package securitycontext_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestHostProcess(t *testing.T) {
	const (
		all     = `spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers`
		network = `spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers`
	)
	differs := func(place, value, ofPod string) string {
		return "spec." + place + ".securityContext.windowsOptions.hostProcess: Invalid value: " + value + ": pod hostProcess value must be identical if both are specified, was " + ofPod
	}
	yes, no := withOptions(corev1.WindowsSecurityContextOptions{HostProcess: new(true)}), withOptions(corev1.WindowsSecurityContextOptions{HostProcess: new(false)})
	ofPod := func(value bool) *corev1.PodSecurityContext {
		return &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &value}}
	}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"none":                {spec: corev1.PodSpec{Containers: []corev1.Container{{}, {SecurityContext: no}}}},
		"all of one":          {spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{SecurityContext: yes}}}},
		"of the pod":          {spec: corev1.PodSpec{HostNetwork: true, SecurityContext: ofPod(true), InitContainers: []corev1.Container{{}}, Containers: []corev1.Container{{}, {SecurityContext: yes}}, EphemeralContainers: []corev1.EphemeralContainer{ephemeral(nil)}}},
		"pod without any":     {spec: corev1.PodSpec{SecurityContext: ofPod(true)}},
		"not in host network": {corev1.PodSpec{SecurityContext: ofPod(true), Containers: []corev1.Container{{}}}, []string{network}},
		"init container not":  {corev1.PodSpec{HostNetwork: true, InitContainers: []corev1.Container{{}}, Containers: []corev1.Container{{SecurityContext: yes}}}, []string{all}},
		"ephemeral only":      {corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{}}, EphemeralContainers: []corev1.EphemeralContainer{ephemeral(yes)}}, []string{all}},
		"pod against one":     {corev1.PodSpec{HostNetwork: true, SecurityContext: ofPod(false), Containers: []corev1.Container{{SecurityContext: yes}}}, []string{differs("containers[0]", "true", "false")}},
		"everything": {
			corev1.PodSpec{SecurityContext: ofPod(true), InitContainers: []corev1.Container{{SecurityContext: no}}, Containers: []corev1.Container{{}, {SecurityContext: no}}, EphemeralContainers: []corev1.EphemeralContainer{ephemeral(no)}},
			[]string{differs("initContainers[0]", "false", "true"), differs("containers[1]", "false", "true"), differs("ephemeralContainers[0]", "false", "true"), all, network},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, refusals(&tt.spec)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
