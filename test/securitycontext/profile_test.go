package securitycontext

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubecore "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/randfill"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/target"
)

func enforcing(c accounts.SecurityContexts) profile.Profile {
	p := profile.Profile{Namespace: "shop", Name: "cart", Exists: true, Contexts: c}
	p.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, SecurityContexts: c}
	return p
}

// contexts are those of a profile of Linux pods, of any values.
func contexts(seed int64) accounts.SecurityContexts {
	var c accounts.SecurityContexts
	randfill.NewWithSeed(seed).NilChance([]float64{0.2, 0.6}[seed%2]).NumElements(1, 2).Fill(&c)
	c.Windows = nil
	if c.Pod != nil {
		c.Pod.WindowsOptions = nil
	}
	if c.Container != nil {
		c.Container.WindowsOptions = nil
		if c.Container.AllowPrivilegeEscalation != nil {
			c.Container.Privileged = nil // true beside false is invalid
		}
	}
	return c
}

// The context of a container after its pod was filled in is, by the function of Kubernetes, that of before with its gaps closed by the context
// that it would have of the profile alone.
func TestFilledInIsEffective(t *testing.T) {
	filled := 0
	for seed := range int64(5_000) {
		c := contexts(seed)
		pod := pods{rand.New(rand.NewSource(seed))}.pod()
		pod.Spec.OS, pod.Spec.EphemeralContainers = nil, nil
		after := enforcing(c).Fill(profile.Pod{Pod: pod})
		if len(after.Patch) > 0 {
			filled++
		}
		ours := effectiveOfKubernetes(c.Pod, c.Container)
		for i := range pod.Spec.Containers {
			before := effectiveOfKubernetes(pod.Spec.SecurityContext, pod.Spec.Containers[i].SecurityContext)
			// As a pod's context closes the gaps of a container's. The fields of containers alone have no such rule of Kubernetes'.
			want := effectiveOfKubernetes(&corev1.PodSecurityContext{
				SELinuxOptions: ours.SELinuxOptions, RunAsUser: ours.RunAsUser, RunAsGroup: ours.RunAsGroup, RunAsNonRoot: ours.RunAsNonRoot,
				SeccompProfile: ours.SeccompProfile, AppArmorProfile: ours.AppArmorProfile}, before)
			inherit := func(field, from **bool) {
				if *field == nil {
					*field = *from
				}
			}
			inherit(&want.Privileged, &ours.Privileged)
			inherit(&want.ReadOnlyRootFilesystem, &ours.ReadOnlyRootFilesystem)
			if escalates := before.Privileged != nil && *before.Privileged; !escalates {
				inherit(&want.AllowPrivilegeEscalation, &ours.AllowPrivilegeEscalation)
			}
			if want.Capabilities == nil {
				want.Capabilities = ours.Capabilities
			}
			if want.ProcMount == nil {
				want.ProcMount = ours.ProcMount
			}
			got := effectiveOfKubernetes(after.Pod.Spec.SecurityContext, after.Pod.Spec.Containers[i].SecurityContext)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: effective context (-Kubernetes +filled in):\n%s\nof pod %s\nand profile %s", seed, diff, shown(t, pod.Spec), shown(t, c))
			}
		}
	}
	if filled < 1_000 {
		t.Errorf("only %d pods were filled in", filled)
	}
}

// The contexts that Kubernetes refuses for themselves are refused in a profile, with its messages at the same fields.
func TestValidateProfiles(t *testing.T) {
	capabilities.ResetForTest()
	capabilities.Setup(true, 0)
	t.Cleanup(capabilities.ResetForTest)
	seen := map[bool]int{}
	for seed := range int64(10_000) {
		r := pods{rand.New(rand.NewSource(seed))}
		c := accounts.SecurityContexts{Pod: oddPod(r), Container: oddContainer(r)}
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: c.Pod.DeepCopy(), HostUsers: new(false), Containers: []corev1.Container{{Name: "c", Image: "image", SecurityContext: c.Container.DeepCopy()}}}}
		pod.Name, pod.Namespace = "pod", "default"
		kubecore.SetObjectDefaults_Pod(pod)
		var want, got []complaint
		for _, of := range complaints(t, ofKubernetes(t, pod)) {
			of.Value, of.Text = "", "" // structures are of Kubernetes' internal types there
			want = append(want, of)
		}
		errs := securitycontext.ValidateContainerContext(c.Container, field.NewPath("spec", "containers").Index(0).Child("securityContext"))
		errs = append(errs, securitycontext.ValidatePodContext(c.Pod, field.NewPath("spec", "securityContext"))...)
		for _, of := range complaints(t, errs) {
			of.Value, of.Text = "", ""
			got = append(got, of)
		}
		if diff := firstDifference(t, want, got); diff != "" {
			t.Fatalf("seed %d: %s\nof %s", seed, diff, shown(t, c))
		}
		seen[len(want) == 0]++
	}
	if seen[true] < 20 {
		t.Errorf("%v contexts are accepted: this compares little", seen)
	}
}

func oddPod(g pods) *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsUser: sometimes(g, oneOf(g, []int64{-1, 0, 1 << 31})), RunAsGroup: sometimes(g, oneOf(g, []int64{-1, 7})), FSGroup: sometimes(g, oneOf(g, []int64{-1, 7})),
		SupplementalGroups: oneOf(g, [][]int64{nil, {1}, {1, -1}}), SupplementalGroupsPolicy: sometimes(g, oneOf(g, []corev1.SupplementalGroupsPolicy{"Strict", "Merge", "strict", ""})),
		FSGroupChangePolicy: sometimes(g, oneOf(g, []corev1.PodFSGroupChangePolicy{"Always", "OnRootMismatch", "Never"})),
		SELinuxChangePolicy: sometimes(g, oneOf(g, []corev1.PodSELinuxChangePolicy{"MountOption", "Recursive", "x"})),
		SeccompProfile:      oddSeccomp(g), AppArmorProfile: oddAppArmor(g),
		Sysctls: oneOf(g, [][]corev1.Sysctl{nil, {{Name: "kernel.shm_rmid_forced", Value: "1"}}, {{Name: ""}}, {{Name: "A.b"}}, {{Name: "net/ipv4/a.b"}, {Name: "net/ipv4/a.b"}}}),
	}
}

func oddContainer(g pods) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: sometimes(g, oneOf(g, []int64{-1, 0, 1 << 31})), RunAsGroup: sometimes(g, oneOf(g, []int64{-1, 7})),
		Privileged: sometimes(g, g.Intn(2) == 0), AllowPrivilegeEscalation: sometimes(g, g.Intn(2) == 0),
		Capabilities: sometimes(g, corev1.Capabilities{Add: []corev1.Capability{oneOf(g, []corev1.Capability{"CAP_SYS_ADMIN", "SYS_ADMIN"})}}),
		ProcMount:    sometimes(g, oneOf(g, []corev1.ProcMountType{"Default", "Unmasked", "x"})), SeccompProfile: oddSeccomp(g), AppArmorProfile: oddAppArmor(g),
	}
}

func oddSeccomp(g pods) *corev1.SeccompProfile {
	return sometimes(g, corev1.SeccompProfile{Type: oneOf(g, []corev1.SeccompProfileType{"RuntimeDefault", "Unconfined", "Localhost", "Localhost", "x", ""}), LocalhostProfile: sometimes(g, oneOf(g, []string{"a.json", "/a", "../a", "a/../b", ""}))})
}

func oddAppArmor(g pods) *corev1.AppArmorProfile {
	return sometimes(g, corev1.AppArmorProfile{Type: oneOf(g, []corev1.AppArmorProfileType{"RuntimeDefault", "Unconfined", "Localhost", "Localhost", "x", ""}), LocalhostProfile: sometimes(g, oneOf(g, []string{"a", " a", "", " "}))})
}

// Where a profile has what Pod Security demands, both refuse the same pods.
func TestOrderIsThatOfPodSecurity(t *testing.T) {
	restricted := accounts.SecurityContexts{
		Pod:       &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Container: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}},
	}
	for id, c := range map[policy.CheckID]accounts.SecurityContexts{
		"runAsNonRoot":              {Pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}},
		"seccompProfile_restricted": {Pod: &corev1.PodSecurityContext{SeccompProfile: restricted.Pod.SeccompProfile}},
		"allowPrivilegeEscalation":  {Container: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)}},
		"capabilities_restricted":   {Container: &corev1.SecurityContext{Capabilities: restricted.Container.Capabilities}},
		"privileged":                {Container: &corev1.SecurityContext{Privileged: new(false)}},
		"procMount":                 {Container: &corev1.SecurityContext{ProcMount: new(corev1.DefaultProcMount)}},
		"windowsHostProcess":        {Windows: &corev1.WindowsSecurityContextOptions{HostProcess: new(false)}},
	} {
		t.Run(string(id), func(t *testing.T) {
			check := checkOf(t, id)
			verdicts := map[bool]int{}
			for seed := range int64(1_000) {
				pod := pods{rand.New(rand.NewSource(seed))}.pod()
				loosen(pod, rand.New(rand.NewSource(seed)))
				allowed := check(&pod.ObjectMeta, &pod.Spec).Allowed
				var found []profile.Difference
				for _, d := range enforcing(c).Weaker(profile.Pod{Pod: pod, OS: osOf(pod)}) {
					host := strings.HasSuffix(d.Field, ".hostProcess")                           // any profile finds it
					if (id == "privileged" || !isPrivileged(d)) && (c.Windows != nil || !host) { // other checks of Pod Security leave these to their own
						found = append(found, d)
					}
				}
				if allowed != (len(found) == 0) {
					t.Fatalf("seed %d: Pod Security allows %t, the profile finds %+v\nof %s", seed, allowed, found, shown(t, pod.Spec))
				}
				verdicts[allowed]++
			}
			if verdicts[true] < 20 || verdicts[false] < 20 {
				t.Errorf("%v pods are allowed: this compares little", verdicts)
			}
		})
	}
}

func isPrivileged(d profile.Difference) bool {
	return strings.HasSuffix(d.Field, ".privileged")
}

func osOf(pod *corev1.Pod) target.OS {
	if pod.Spec.OS == nil {
		return ""
	}
	return target.OS(pod.Spec.OS.Name)
}

// loosen has containers of Linux pods add and drop capabilities, and be confined, in all ways.
func loosen(pod *corev1.Pod, r *rand.Rand) {
	g := pods{r}
	if pod.Spec.OS == nil || pod.Spec.OS.Name != corev1.Windows {
		pod.Spec.OS = nil
	}
	pod.Spec.HostUsers = nil // by which Pod Security allows more
	pod.Spec.InitContainers, pod.Spec.EphemeralContainers = nil, nil
	pod.Spec.Containers = pod.Spec.Containers[:1]
	if pod.Spec.OS != nil {
		pod.Spec.Containers[0].SecurityContext = nil // nothing of Linux may be there
		return
	}
	c := &pod.Spec.Containers[0]
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	c.SecurityContext.WindowsOptions = nil // hostProcess must be the pod's
	c.SecurityContext.Capabilities = sometimes(g, corev1.Capabilities{
		Drop: oneOf(g, [][]corev1.Capability{nil, {"ALL"}, {"KILL"}, {"all"}, {"ALL", "KILL"}}), Add: oneOf(g, [][]corev1.Capability{nil, {"NET_BIND_SERVICE"}, {"NET_ADMIN"}, {"ALL"}, {"net_bind_service"}})})
	c.SecurityContext.ProcMount = sometimes(g, oneOf(g, []corev1.ProcMountType{"Default", "Unmasked"}))
	c.SecurityContext.AllowPrivilegeEscalation, c.SecurityContext.RunAsNonRoot = sometimes(g, g.Intn(2) == 0), sometimes(g, g.Intn(2) == 0)
	c.SecurityContext.SeccompProfile = sometimes(g, corev1.SeccompProfile{Type: oneOf(g, []corev1.SeccompProfileType{"RuntimeDefault", "Unconfined", "Localhost"})})
}

func checkOf(t *testing.T, id policy.CheckID) policy.CheckPodFn {
	t.Helper()
	for _, check := range policy.DefaultChecks() {
		if check.ID == id {
			return check.Versions[len(check.Versions)-1].CheckPod
		}
	}
	t.Fatalf("Pod Security has no check %s", id)
	return nil
}
