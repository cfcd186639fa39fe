package securitycontext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/securitycontext"
)

// refusals are Validate's errors of a spec, as users see them.
func refusals(spec *corev1.PodSpec) []string {
	var said []string
	for _, err := range securitycontext.Validate(spec, field.NewPath("spec")) {
		said = append(said, err.Error())
	}
	return said
}

func withOptions(o corev1.WindowsSecurityContextOptions) *corev1.SecurityContext {
	return &corev1.SecurityContext{WindowsOptions: &o}
}

func ephemeral(sc *corev1.SecurityContext) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: sc}}
}

const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

func TestGMSAFields(t *testing.T) {
	const nameAt, specAt = "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: ", "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "
	long := strings.Repeat("a", 254)
	big := strings.Repeat("x", 64<<10+1)
	for name, tt := range map[string]struct {
		options corev1.WindowsSecurityContextOptions
		want    []string
	}{
		"nothing":          {},
		"valid":            {options: corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("webapp1.credspec-2"), GMSACredentialSpec: new("not json")}},
		"longest name":     {options: corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new(long[1:])}},
		"name too long":    {corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: &long}, []string{nameAt + `"` + long + `": must be no more than 253 characters`}},
		"name empty":       {corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("")}, []string{nameAt + `"": ` + subdomain}},
		"name with a path": {corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("../x")}, []string{nameAt + `"../x": ` + subdomain}},
		"upper case":       {corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("WebApp")}, []string{nameAt + `"WebApp": ` + subdomain}},
		"long and wrong":   {corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new(long + "_")}, []string{nameAt + `"` + long + `_": must be no more than 253 characters`, nameAt + `"` + long + `_": ` + subdomain}},
		"one byte":         {options: corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new("{")}},
		"largest contents": {options: corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new(big[1:])}},
		"too large":        {corev1.WindowsSecurityContextOptions{GMSACredentialSpec: &big}, []string{specAt + `"` + big + `": gmsaCredentialSpec size must be under 64 KiB`}},
		"no contents":      {corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new("")}, []string{specAt + `"": gmsaCredentialSpec cannot be an empty string`}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: withOptions(tt.options)}}}
			if diff := cmp.Diff(tt.want, refusals(spec)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// Every place is checked, and reported in the order of Kubernetes.
func TestEveryPlace(t *testing.T) {
	bad := corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("A"), GMSACredentialSpec: new(""), RunAsUserName: new(`a\b\c`)}
	spec := &corev1.PodSpec{
		SecurityContext:     &corev1.PodSecurityContext{WindowsOptions: &bad},
		InitContainers:      []corev1.Container{{}, {SecurityContext: withOptions(bad)}},
		Containers:          []corev1.Container{{SecurityContext: &corev1.SecurityContext{}}, {SecurityContext: withOptions(bad)}},
		EphemeralContainers: []corev1.EphemeralContainer{ephemeral(nil), ephemeral(withOptions(bad))},
	}
	var want []string
	for _, place := range []string{"spec.template.spec.containers[1].", "spec.template.spec.initContainers[1].", "spec.template.spec.ephemeralContainers[1].", "spec.template.spec."} {
		at := place + "securityContext.windowsOptions."
		want = append(want,
			at+`gmsaCredentialSpecName: Invalid value: "A": `+subdomain,
			at+`gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string`,
			at+`runAsUserName: Invalid value: "a\\b\\c": runAsUserName cannot contain more than one backslash`)
	}
	before := spec.DeepCopy()
	var got []string
	for _, err := range securitycontext.Validate(spec, field.NewPath("spec", "template", "spec")) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("Validate changed the spec (-before +after):\n%s", diff)
	}
}

func TestNoPod(t *testing.T) {
	if got := refusals(nil); got != nil {
		t.Errorf("no pod is refused: %v", got)
	}
}
