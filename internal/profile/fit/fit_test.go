package fit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/profile/fit"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

func pod(t *testing.T, os target.OS, text string) profile.Pod {
	t.Helper()
	p := &corev1.Pod{}
	testkit.Must(t, yaml.UnmarshalStrict([]byte(text), &p.Spec))
	return profile.Pod{Pod: p, OS: os}
}

func TestSpec(t *testing.T) {
	strict := `
securityContext: {runAsUser: 7, runAsNonRoot: true, fsGroup: 9, supplementalGroups: [1, 2], seccompProfile: {type: RuntimeDefault}}
containers: [{name: a, securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL], add: [CHOWN]}}}]
imagePullSecrets: [{name: registry}]
automountServiceAccountToken: false
volumes: [{name: s, secret: {secretName: tls}}]`
	for _, c := range []struct {
		name string
		pods []profile.Pod
		want string
	}{
		{"no pods", nil, `{}`},
		{"a pod that has nothing", []profile.Pod{pod(t, "", `containers: [{name: a}]`)},
			`{automountToken: false, secrets: {allowed: []}, securityContext: {mode: Enforce, container: {privileged: false}}}`},
		{"one that has its token", []profile.Pod{pod(t, "", `{containers: [{name: a}], volumes: [{name: kube-api-access-x, projected: {}}]}`)},
			`{secrets: {allowed: []}, securityContext: {mode: Enforce, container: {privileged: false}}}`},
		{"one", []profile.Pod{pod(t, "", strict)}, `
automountToken: false
secrets: {allowed: [tls], imagePull: [registry]}
securityContext:
  mode: Enforce
  pod: {runAsUser: 7, runAsNonRoot: true, fsGroup: 9, supplementalGroups: [1, 2], seccompProfile: {type: RuntimeDefault}}
  container: {privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL], add: [CHOWN]}}`},
		{"two that differ", []profile.Pod{pod(t, "", strict), pod(t, "", `
securityContext: {runAsUser: 8, runAsNonRoot: true, fsGroup: 9, supplementalGroups: [3], seccompProfile: {type: Localhost, localhostProfile: x}}
containers: [{name: a, env: [{name: P, valueFrom: {secretKeyRef: {name: password, key: k}}}], securityContext: {capabilities: {drop: [CHOWN, KILL], add: [BPF]}}}]
automountServiceAccountToken: true`)}, `
secrets: {allowed: [password, registry, tls]}
securityContext:
  mode: Enforce
  pod: {runAsNonRoot: true, fsGroup: 9, supplementalGroups: [1, 2, 3], seccompProfile: {type: RuntimeDefault}}
  container: {privileged: false, capabilities: {drop: [CHOWN, KILL], add: [BPF, CHOWN]}}`},
		{"a privileged one", []profile.Pod{pod(t, "", strict), pod(t, "", `{securityContext: {runAsUser: 7}, containers: [{name: a, securityContext: {privileged: true, seccompProfile: {type: RuntimeDefault}}}]}`)},
			`{secrets: {allowed: [registry, tls]}, automountToken: false, securityContext: {mode: Enforce, pod: {runAsUser: 7}}}`},
		{"Windows", []profile.Pod{pod(t, target.Windows, `{securityContext: {windowsOptions: {gmsaCredentialSpecName: web, runAsUserName: u}}, containers: [{name: a}, {name: b, securityContext: {windowsOptions: {runAsUserName: v}}}]}`)},
			`{automountToken: false, secrets: {allowed: []}, securityContext: {mode: Enforce, windows: {gmsaCredentialSpecName: web, hostProcess: false}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want accounts.ServiceAccountProfileSpec
			testkit.Must(t, yaml.UnmarshalStrict([]byte(c.want), &want))
			if diff := cmp.Diff(want, fit.Spec(c.pods)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No pod is refused by the profile that was made of it, and none gets another security context by it.
func TestAllPodsMeetIt(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0))
		var pods []profile.Pod
		for range 1 + random.IntN(3) {
			pods = append(pods, generated(random))
		}
		p := profile.Resolve(&accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: fit.Spec(pods)}, nil)
		if len(p.Faults) > 0 {
			t.Fatalf("seed %d: %v", seed, p.Faults)
		}
		for _, pod := range pods {
			if weaker, secrets := p.Weaker(pod), p.Secrets(pod); len(weaker)+len(secrets) > 0 {
				t.Fatalf("seed %d: %v %v", seed, weaker, secrets)
			}
			filled := p.Fill(pod)
			if denial := p.Refuse(profile.Pod{Pod: filled.Pod, OS: pod.OS}); denial != nil {
				t.Fatalf("seed %d: %s", seed, denial.Message)
			}
		}
	}
}

func one[T any](random *rand.Rand, values ...T) *T {
	if n := random.IntN(len(values) + 1); n < len(values) {
		return &values[n]
	}
	return nil
}

func generated(random *rand.Rand) profile.Pod {
	seccomp := []corev1.SeccompProfile{{Type: "RuntimeDefault"}, {Type: "Unconfined"}, {Type: "Localhost", LocalhostProfile: new("x")}}
	windows := func() *corev1.WindowsSecurityContextOptions {
		return one(random, corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: one(random, "a", "b"), RunAsUserName: one(random, "u")})
	}
	context := func() *corev1.SecurityContext {
		c := corev1.SecurityContext{
			RunAsUser: one(random, int64(1), 2), RunAsGroup: one(random, int64(1)), RunAsNonRoot: one(random, true, false), SeccompProfile: one(random, seccomp...),
			Privileged: one(random, true, false, false), ReadOnlyRootFilesystem: one(random, true), WindowsOptions: windows(),
			AppArmorProfile: one(random, corev1.AppArmorProfile{Type: "RuntimeDefault"}),
			Capabilities:    one(random, corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, corev1.Capabilities{Drop: []corev1.Capability{"CHOWN"}, Add: []corev1.Capability{"BPF"}}),
		}
		if c.Privileged == nil || !*c.Privileged {
			c.AllowPrivilegeEscalation = one(random, true, false, false)
		}
		return one(random, c, c)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: one(random, corev1.PodSecurityContext{
		RunAsUser: one(random, int64(1)), RunAsNonRoot: one(random, true), FSGroup: one(random, int64(1), 2), SeccompProfile: one(random, seccomp...), WindowsOptions: windows(),
		SupplementalGroupsPolicy: one(random, corev1.SupplementalGroupsPolicyStrict, corev1.SupplementalGroupsPolicyMerge), Sysctls: []corev1.Sysctl{{Name: "a", Value: fmt.Sprint(random.IntN(2))}}[:random.IntN(2)],
	})}}
	for n := range 1 + random.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint(n), SecurityContext: context()})
	}
	if random.IntN(2) == 0 {
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", SecurityContext: context()}}
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	}
	if random.IntN(2) == 0 {
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: fmt.Sprint("s", random.IntN(3))}}}}
	}
	oses := []target.OS{"", target.Linux, target.Windows}
	return profile.Pod{Pod: pod, OS: oses[random.IntN(3)]}
}
