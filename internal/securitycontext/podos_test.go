package securitycontext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestUnknownOS(t *testing.T) {
	for name, want := range map[corev1.OSName]string{
		"":        "spec.os.name: Required value",
		"darwin":  `spec.os: Unsupported value: "darwin": supported values: "linux", "windows"`,
		"Windows": `spec.os: Unsupported value: "Windows": supported values: "linux", "windows"`,
	} {
		spec := &corev1.PodSpec{OS: &corev1.PodOS{Name: name}, SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(1)), WindowsOptions: windows(corev1.WindowsSecurityContextOptions{})}}
		if diff := cmp.Diff([]string{want}, refusals(spec)); diff != "" {
			t.Errorf("%q: refusals (-want +got):\n%s", name, diff)
		}
	}
}

func TestLinuxPod(t *testing.T) {
	empty := withOptions(corev1.WindowsSecurityContextOptions{})
	spec := &corev1.PodSpec{
		OS:                  &corev1.PodOS{Name: corev1.Linux},
		SecurityContext:     &corev1.PodSecurityContext{RunAsUser: new(int64(1)), WindowsOptions: empty.WindowsOptions},
		InitContainers:      []corev1.Container{{SecurityContext: empty}},
		Containers:          []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}, {SecurityContext: empty}},
		EphemeralContainers: []corev1.EphemeralContainer{ephemeral(empty)},
	}
	var want []string
	for _, place := range []string{"spec.", "spec.initContainers[0].", "spec.containers[1].", "spec.ephemeralContainers[0]."} {
		want = append(want, place+"securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod")
	}
	if diff := cmp.Diff(want, refusals(spec)); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	spec.OS = nil
	if got := refusals(spec); got != nil {
		t.Errorf("a pod without an operating system: %v", got)
	}
}

func TestWindowsPod(t *testing.T) {
	// Values that could be mistaken for nothing.
	sc := &corev1.SecurityContext{
		AppArmorProfile: &corev1.AppArmorProfile{}, SELinuxOptions: &corev1.SELinuxOptions{}, SeccompProfile: &corev1.SeccompProfile{},
		Capabilities: &corev1.Capabilities{}, ReadOnlyRootFilesystem: new(false), Privileged: new(false), AllowPrivilegeEscalation: new(false),
		ProcMount: new(corev1.DefaultProcMount), RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)),
		RunAsNonRoot: new(true), WindowsOptions: windows(corev1.WindowsSecurityContextOptions{}),
	}
	spec := &corev1.PodSpec{
		OS: &corev1.PodOS{Name: corev1.Windows}, HostNetwork: true, HostPID: true, HostIPC: true,
		HostUsers: new(true), ShareProcessNamespace: new(false), Resources: &corev1.ResourceRequirements{},
		SecurityContext: &corev1.PodSecurityContext{
			AppArmorProfile: sc.AppArmorProfile, SELinuxOptions: sc.SELinuxOptions, SeccompProfile: sc.SeccompProfile,
			FSGroup: new(int64(0)), FSGroupChangePolicy: new(corev1.FSGroupChangeAlways), Sysctls: []corev1.Sysctl{{}},
			RunAsUser: sc.RunAsUser, RunAsGroup: sc.RunAsGroup, SupplementalGroups: []int64{},
			SupplementalGroupsPolicy: new(corev1.SupplementalGroupsPolicyMerge), SELinuxChangePolicy: new(corev1.SELinuxChangePolicyRecursive),
			RunAsNonRoot: new(true), WindowsOptions: windows(corev1.WindowsSecurityContextOptions{}),
		},
		InitContainers:      []corev1.Container{{SecurityContext: sc}},
		Containers:          []corev1.Container{{}, {SecurityContext: sc}},
		EphemeralContainers: []corev1.EphemeralContainer{ephemeral(sc)},
	}
	want := []string{"spec.resources: Forbidden: may not be set for a windows pod"}
	for fields := range strings.FieldsSeq("securityContext.appArmorProfile securityContext.seLinuxOptions securityContext.seccompProfile securityContext.fsGroup securityContext.fsGroupChangePolicy securityContext.sysctls securityContext.runAsUser securityContext.runAsGroup securityContext.supplementalGroups securityContext.supplementalGroupsPolicy securityContext.seLinuxChangePolicy hostUsers hostPID hostIPC shareProcessNamespace") {
		want = append(want, "spec."+fields+": Forbidden: cannot be set for a windows pod")
	}
	for _, place := range []string{"initContainers[0]", "containers[1]", "ephemeralContainers[0]"} {
		for name := range strings.FieldsSeq("appArmorProfile seLinuxOptions seccompProfile capabilities readOnlyRootFilesystem privileged allowPrivilegeEscalation procMount runAsUser runAsGroup") {
			want = append(want, "spec."+place+".securityContext."+name+": Forbidden: cannot be set for a windows pod")
		}
	}
	if diff := cmp.Diff(want, refusals(spec)); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}

	spec = &corev1.PodSpec{OS: spec.OS, HostNetwork: true, SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), Sysctls: []corev1.Sysctl{}}, Containers: []corev1.Container{{}}}
	if got := refusals(spec); got != nil {
		t.Errorf("a Windows pod without anything of Linux: %v", got)
	}
}

func TestStopSignal(t *testing.T) {
	stop := func(s corev1.Signal) *corev1.Lifecycle { return &corev1.Lifecycle{StopSignal: &s} }
	always := new(corev1.ContainerRestartPolicyAlways)
	linux, onWindows := &corev1.PodOS{Name: corev1.Linux}, &corev1.PodOS{Name: corev1.Windows}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"Windows":          {spec: corev1.PodSpec{OS: onWindows, Containers: []corev1.Container{{Lifecycle: stop("SIGTERM")}, {Lifecycle: stop("SIGKILL")}, {Lifecycle: &corev1.Lifecycle{}}}}},
		"not on Windows":   {corev1.PodSpec{OS: onWindows, Containers: []corev1.Container{{Lifecycle: stop("SIGINT")}}}, []string{`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGINT": supported values: "SIGKILL", "SIGTERM"`}},
		"of a sidecar":     {corev1.PodSpec{OS: onWindows, InitContainers: []corev1.Container{{Lifecycle: stop("SIGINT"), RestartPolicy: always}}}, []string{`spec.initContainers[0].lifecycle.stopSignal: Unsupported value: "SIGINT": supported values: "SIGKILL", "SIGTERM"`}},
		"no lifecycle":     {spec: corev1.PodSpec{OS: onWindows, InitContainers: []corev1.Container{{Lifecycle: stop("SIGINT")}}}},
		"no OS":            {corev1.PodSpec{Containers: []corev1.Container{{Lifecycle: stop("SIGTERM")}}}, []string{"spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"}},
		"Linux":            {spec: corev1.PodSpec{OS: linux, Containers: []corev1.Container{{Lifecycle: stop("SIGRTMAX-14")}, {Lifecycle: stop("SIGINT")}}}},
		"of nothing known": {corev1.PodSpec{OS: &corev1.PodOS{Name: "plan9"}, Containers: []corev1.Container{{Lifecycle: stop("SIGINT")}}}, []string{`spec.os: Unsupported value: "plan9": supported values: "linux", "windows"`}},
		"not on Linux": {corev1.PodSpec{OS: linux, Containers: []corev1.Container{{Lifecycle: stop("SIGBREAK")}}}, []string{`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGBREAK": supported values: ` +
			`"SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", ` +
			`"SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", ` +
			`"SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", ` +
			`"SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, refusals(&tt.spec)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
