package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/securitycontext/cri"
)

// TestExplainedIsHandedOver: the output of explain equals the messages to a runtime. The command does not use
// their package, since all of gRPC would come along.
func TestExplainedIsHandedOver(t *testing.T) {
	some := func(text string) *string { return &text }
	yes := true
	for name, context := range map[string]struct {
		pod       *corev1.WindowsSecurityContextOptions
		container *corev1.WindowsSecurityContextOptions
	}{
		"nothing":   {nil, nil},
		"of pod":    {&corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: some("a"), GMSACredentialSpec: some(`{"a":1}`), RunAsUserName: some("x")}, nil},
		"of both":   {&corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: some("a"), GMSACredentialSpec: some(`{"a":1}`)}, &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: some("b"), GMSACredentialSpec: some(`{"b":1}`)}},
		"user":      {&corev1.WindowsSecurityContextOptions{RunAsUserName: some("x")}, &corev1.WindowsSecurityContextOptions{RunAsUserName: some("y")}},
		"host":      {&corev1.WindowsSecurityContextOptions{HostProcess: &yes}, nil},
		"empty one": {nil, &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: some("")}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			HostNetwork:     true,
			SecurityContext: &corev1.PodSecurityContext{WindowsOptions: context.pod},
			Containers:      []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{WindowsOptions: context.container}}},
		}}
		x := &Accounts{}
		x.containers(pod)
		effective := securitycontext.Effective(pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext)
		message, err := cri.WindowsContainer(cri.Container{Name: "main", Effective: effective})
		if err != nil {
			t.Fatal(name, err)
		}
		sandbox, err := cri.WindowsSandbox(&pod.Spec, securitycontext.Effective)
		if err != nil {
			t.Fatal(name, err)
		}
		type handed struct {
			Contents, User string
			Host           bool
		}
		want := []handed{
			{sandbox.GetCredentialSpec(), sandbox.GetRunAsUsername(), sandbox.GetHostProcess()},
			{message.GetCredentialSpec(), message.GetRunAsUsername(), message.GetHostProcess()},
		}
		var got []handed
		for _, i := range []int{0, 1} {
			got = append(got, handed{x.Containers[i].Contents, x.Containers[i].UserName, x.Containers[i].HostProcess})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-handed over +explained):\n%s", name, diff)
		}
	}
}
