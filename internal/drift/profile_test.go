package drift_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/targets"
)

// profileOf is a profile whose containers run as a user.
func profileOf(user int64, mode accounts.Mode, onChange accounts.OnChange) profile.Profile {
	p := &accounts.ServiceAccountProfile{}
	p.Namespace, p.Name = "shop", "cart"
	p.Spec.OnChange = onChange
	p.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: mode, SecurityContexts: accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsUser: &user, RunAsNonRoot: ptr.To(true)}}}
	return profile.Resolve(p, nil)
}

func TestDecideProfiles(t *testing.T) {
	filled := func(*corev1.Pod) {}
	explicit := func(pod *corev1.Pod) { pod.Spec.SecurityContext.RunAsUser = ptr.To[int64](1000) }
	for name, test := range map[string]struct {
		asked    func(*corev1.Pod)
		was, now profile.Profile
		want     string
	}{
		"unchanged":           {filled, profileOf(7, accounts.ModeDefault, ""), profileOf(7, accounts.ModeDefault, ""), "current"},
		"filled in otherwise": {filled, profileOf(7, accounts.ModeDefault, ""), profileOf(8, accounts.ModeDefault, ""), "stale spec.securityContext.runAsUser 7 → 8"},
		"made before it":      {filled, profile.Profile{}, profileOf(8, accounts.ModeDefault, ""), "stale spec.securityContext.runAsNonRoot (none) → true"},
		"taken off":           {filled, profileOf(7, accounts.ModeDefault, ""), profile.Profile{}, "stale spec.securityContext.runAsNonRoot true → (none)"},
		"the pod's own value": {explicit, profileOf(7, accounts.ModeDefault, ""), profileOf(8, accounts.ModeDefault, ""), "current"},
		"enforced now":        {explicit, profileOf(7, accounts.ModeDefault, ""), profileOf(8, accounts.ModeEnforce, ""), "refused now: *runAsUser*"},
		"new ones blocked":    {explicit, profileOf(7, accounts.ModeDefault, ""), profileOf(8, accounts.ModeDefault, accounts.OnChangeBlockNew), "refused now: *runAsUser*"},
		"filled in, blocked":  {filled, profileOf(7, accounts.ModeDefault, ""), profileOf(8, accounts.ModeDefault, accounts.OnChangeBlockNew), "stale spec.securityContext.runAsUser 7 → 8"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "cart", SecurityContext: &corev1.PodSecurityContext{}, Containers: []corev1.Container{{Name: "main"}}}}
			test.asked(pod)
			p := drift.Pod{Enabled: true, Request: pods.Request{Namespace: "shop", Pod: pod, NoIdentities: true, Adapters: targets.For, Account: pods.Account{Name: "cart", Exists: true}, Profile: test.was}}
			admit(t, &p)
			p.Request.Profile = test.now
			got := decide(t, p).String()
			for part := range strings.SplitSeq(test.want, "*") {
				if !strings.Contains(got, part) {
					t.Errorf("%s\nwant %s", got, test.want)
				}
			}
		})
	}
}

// Before Kubernetes 1.34, the API server adds an annotation beside the field of AppArmor.
func TestAnnotationsOfAppArmorAreNoDrift(t *testing.T) {
	p := &accounts.ServiceAccountProfile{}
	p.Spec.SecurityContext = &accounts.ProfileSecurityContext{SecurityContexts: accounts.SecurityContexts{Container: &corev1.SecurityContext{
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
	}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "cart", Containers: []corev1.Container{{Name: "main"}}}}
	found := drift.Pod{Enabled: true, Request: pods.Request{
		Namespace: "shop", Pod: pod, NoIdentities: true, Adapters: targets.For, Account: pods.Account{Name: "cart", Exists: true}, Profile: profile.Resolve(p, nil),
	}}
	admit(t, &found)
	found.Request.Pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+"main"] = "runtime/default"
	if got := decide(t, found).String(); got != "current" {
		t.Errorf("the pod is %s, want current", got)
	}
}
