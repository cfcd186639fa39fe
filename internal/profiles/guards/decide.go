package guards

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
)

// Reasons of the condition Enforced.
const (
	reasonNotEnabled       = "NamespaceNotEnabled"
	reasonNothingToRefuse  = "NothingToRefuse"
	reasonWebhookAndPolicy = "WebhookAndPolicy"
	reasonWebhookAlone     = "WebhookAlone"
)

// toWebhook returns the names of the profiles that are left to the webhook: those beyond the first PolicyProfiles. Profiles of which the
// policy can refuse something come first, and then older ones.
func toWebhook(profiles []accounts.ServiceAccountProfile) sets.Set[string] {
	left := sets.New[string]()
	if len(profiles) <= accounts.PolicyProfiles {
		return left
	}
	order := make([]*accounts.ServiceAccountProfile, 0, len(profiles))
	for i := range profiles {
		order = append(order, &profiles[i])
	}
	turn := map[bool]int{true: 1, false: 2}
	slices.SortFunc(order, func(a, b *accounts.ServiceAccountProfile) int {
		return cmp.Or(cmp.Compare(turn[seen(a)], turn[seen(b)]), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range order[accounts.PolicyProfiles:] {
		left.Insert(p.Name)
	}
	return left
}

// seen reports whether the policy can refuse something by a profile.
func seen(p *accounts.ServiceAccountProfile) bool { return allows(p) || enforces(p) && !refers(p) }

func allows(p *accounts.ServiceAccountProfile) bool {
	return p.Spec.Secrets != nil && p.Spec.Secrets.Allowed != nil
}

func enforces(p *accounts.ServiceAccountProfile) bool {
	return profile.Profile{Spec: p.Spec}.Enforces()
}

func refers(p *accounts.ServiceAccountProfile) bool {
	return p.Spec.SecurityContext != nil && p.Spec.SecurityContext.TemplateRef != nil
}

// enforced decides the condition Enforced: whether pods are refused that a profile does not allow, and by what. In namespaces that are enabled the
// webhook applies profiles, and in some of them the policy is evaluated.
func enforced(p *accounts.ServiceAccountProfile, enabled, policy, left bool) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: accounts.ConditionEnforced, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation}
	}
	switch {
	case !enabled:
		return is(metav1.ConditionFalse, reasonNotEnabled, fmt.Sprintf("profiles have no effect in namespace %s; a cluster admin enables them with: kubectl label namespace %s %s=%s",
			p.Namespace, p.Namespace, accounts.LabelNamespaceProfiles, accounts.NamespaceEnabled))
	case !allows(p) && !enforces(p):
		return is(metav1.ConditionTrue, reasonNothingToRefuse, "the profile fills in, and refuses no pod")
	case !policy:
		return is(metav1.ConditionTrue, reasonWebhookAlone, fmt.Sprintf("the policy credence-profile-pods is for namespaces with the label %s=%s; a cluster admin sets it with: kubectl label namespace %s %s=%s",
			accounts.LabelNamespaceProfiles, accounts.NamespaceEnabled, p.Namespace, accounts.LabelNamespaceProfiles, accounts.NamespaceEnabled))
	case left:
		return is(metav1.ConditionTrue, reasonWebhookAlone, fmt.Sprintf("the namespace has more than %d profiles: the policy credence-profile-pods is evaluated with so many of them, and leaves this one to the webhook", accounts.PolicyProfiles))
	case !seen(p):
		return is(metav1.ConditionTrue, reasonWebhookAlone, "the policy credence-profile-pods cannot see the SecurityContextTemplate that the profile refers to")
	case enforces(p) && refers(p):
		return is(metav1.ConditionTrue, reasonWebhookAndPolicy, "secrets.allowed holds by the policy credence-profile-pods too; the security context, of a SecurityContextTemplate, by the webhook alone")
	}
	return is(metav1.ConditionTrue, reasonWebhookAndPolicy, "pods are refused by the webhook, and by the policy credence-profile-pods")
}
