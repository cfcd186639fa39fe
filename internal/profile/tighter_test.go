package profile_test

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/profile"
)

// Capabilities are taken away, and never given.
func TestTighterCapabilities(t *testing.T) {
	type caps = []corev1.Capability
	restricted := &corev1.Capabilities{Add: caps{"NET_BIND_SERVICE"}, Drop: caps{"ALL"}}
	for name, test := range map[string]struct{ has, wants, want *corev1.Capabilities }{
		"none":               {nil, restricted, &corev1.Capabilities{Drop: caps{"ALL"}}},
		"more":               {&corev1.Capabilities{Add: caps{"NET_BIND_SERVICE", "SYS_ADMIN"}}, restricted, &corev1.Capabilities{Add: caps{"NET_BIND_SERVICE"}, Drop: caps{"ALL"}}},
		"all":                {&corev1.Capabilities{Add: caps{"ALL"}}, restricted, &corev1.Capabilities{Drop: caps{"ALL"}}},
		"other names":        {&corev1.Capabilities{Add: caps{"CAP_SYS_ADMIN", "sys_admin"}, Drop: caps{"MKNOD"}}, restricted, &corev1.Capabilities{Drop: caps{"MKNOD", "ALL"}}},
		"as strict":          {&corev1.Capabilities{Add: caps{"NET_BIND_SERVICE"}, Drop: caps{"ALL"}}, restricted, nil},
		"stricter":           {&corev1.Capabilities{Drop: caps{"ALL"}}, restricted, nil},
		"what drops is kept": {&corev1.Capabilities{Add: caps{"SYS_ADMIN"}, Drop: caps{"KILL"}}, &corev1.Capabilities{Add: caps{"CHOWN"}}, &corev1.Capabilities{Drop: caps{"KILL"}}},
	} {
		got, _ := profile.Tighter(&corev1.SecurityContext{Capabilities: test.has}, &corev1.SecurityContext{Capabilities: test.wants})
		if diff := cmp.Diff(test.want, got.Capabilities); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// With the changes a context is not weaker in any field, whatever the two are; and without a weaker field there is no change.
func TestTighterIsNotWeaker(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	changed := 0
	for range 2000 {
		has, wants := arbitrary[corev1.SecurityContext](r), arbitrary[corev1.SecurityContext](r)
		before := has.DeepCopy()
		changes, weaker := profile.Tighter(&has, &wants)
		if diff := cmp.Diff(before, &has); diff != "" {
			t.Fatalf("the context itself is changed:\n%s", diff)
		}
		if len(weaker) == 0 && !cmp.Equal(changes, &corev1.SecurityContext{}) {
			t.Fatalf("there are changes without a weaker field: %v", changes)
		}
		changed += len(weaker)
		after := has.DeepCopy()
		override(&after.SELinuxOptions, changes.SELinuxOptions)
		override(&after.RunAsUser, changes.RunAsUser)
		override(&after.RunAsGroup, changes.RunAsGroup)
		override(&after.RunAsNonRoot, changes.RunAsNonRoot)
		override(&after.SeccompProfile, changes.SeccompProfile)
		override(&after.AppArmorProfile, changes.AppArmorProfile)
		override(&after.Capabilities, changes.Capabilities)
		override(&after.Privileged, changes.Privileged)
		override(&after.AllowPrivilegeEscalation, changes.AllowPrivilegeEscalation)
		override(&after.ReadOnlyRootFilesystem, changes.ReadOnlyRootFilesystem)
		override(&after.ProcMount, changes.ProcMount)
		if _, still := profile.Tighter(after, &wants); len(still) > 0 {
			t.Fatalf("%v is weaker than %v still: %v", after, wants, still)
		}
	}
	if changed == 0 {
		t.Error("nothing was ever weaker")
	}
}

func override[T any](into **T, with *T) {
	if with != nil {
		*into = with
	}
}
