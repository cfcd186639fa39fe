package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A kubelet gives a runtime the contents of a credential spec, of the pod for its sandbox, and the container's own or else the pod's for a container.
// The sandbox is one of the host if a container is.
func TestAccountsAreThoseOfAKubelet(t *testing.T) {
	type options = corev1.WindowsSecurityContextOptions
	type handed struct {
		Contents, User string
		Host           bool
	}
	for name, test := range map[string]struct {
		pod, container *options
		want           [2]handed // the sandbox, the container
	}{
		"nothing": {},
		"of pod": {pod: &options{GMSACredentialSpecName: new("a"), GMSACredentialSpec: new(`{"a":1}`), RunAsUserName: new("x")},
			want: [2]handed{{Contents: `{"a":1}`, User: "x"}, {Contents: `{"a":1}`, User: "x"}}},
		"of both": {pod: &options{GMSACredentialSpecName: new("a"), GMSACredentialSpec: new(`{"a":1}`)}, container: &options{GMSACredentialSpecName: new("b"), GMSACredentialSpec: new(`{"b":1}`)},
			want: [2]handed{{Contents: `{"a":1}`}, {Contents: `{"b":1}`}}},
		"of the container": {container: &options{GMSACredentialSpecName: new("b"), GMSACredentialSpec: new(`{"b":1}`)}, want: [2]handed{{}, {Contents: `{"b":1}`}}},
		"user":             {pod: &options{RunAsUserName: new("x")}, container: &options{RunAsUserName: new("y")}, want: [2]handed{{User: "x"}, {User: "y"}}},
		"host":             {pod: &options{HostProcess: new(true)}, want: [2]handed{{Host: true}, {Host: true}}},
		"host of each":     {container: &options{HostProcess: new(true)}, want: [2]handed{{Host: true}, {Host: true}}},
		"empty one":        {container: &options{GMSACredentialSpec: new("")}},
	} {
		x := &Accounts{}
		x.containers(&corev1.Pod{Spec: corev1.PodSpec{
			HostNetwork:     true,
			SecurityContext: &corev1.PodSecurityContext{WindowsOptions: test.pod},
			Containers:      []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{WindowsOptions: test.container}}},
		}})
		var got [2]handed
		for i := range got {
			got[i] = handed{x.Containers[i].Contents, x.Containers[i].UserName, x.Containers[i].HostProcess}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
