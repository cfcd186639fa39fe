package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

// waitingOf returns what the agent has written into the status of a pod that waits behind its gate; nil if it has not.
func waitingOf(pod *corev1.Pod) *inventory.Warning {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.ConditionTokenReady })
	if at < 0 || pod.Status.Conditions[at].Status != corev1.ConditionFalse || !inventory.WaitsForToken(pod) {
		return nil
	}
	condition := pod.Status.Conditions[at]
	return &inventory.Warning{Time: condition.LastProbeTime.UTC(), Reason: condition.Reason, Message: wording.Redact(condition.Message)}
}

// wait makes what the agent has written the verdict on a pod that waits, unless something else was found, or the reason is gone.
func (x *Pod) wait(agent string) {
	if x.Waiting == nil || !slices.Contains([]string{Admitted, Unaffected, Unknown}, x.Verdict) {
		return
	}
	for _, in := range x.Identities {
		if in.LastFailure != nil && strings.HasSuffix(x.Waiting.Message, in.LastFailure.Message) && settled(in, agent) {
			return
		}
	}
	x.Verdict, x.Reason = Blocked, x.Waiting.Message
}

// patience is how long a pod may wait until an agent has reported about it.
const patience = 30 * time.Second

// unseen finds that no agent has looked at a pod that waits, where nothing else is known to keep it.
func (x *Pod) unseen(subject Subject, now time.Time) {
	if !subject.exists || !x.Gated || x.LastFailure != nil || subject.pod.CreationTimestamp.IsZero() || !slices.Contains([]string{Admitted, Unaffected, Unknown}, x.Verdict) {
		return
	}
	waited := now.Sub(subject.pod.CreationTimestamp.Time)
	if waited < patience || slices.ContainsFunc(subject.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.ConditionTokenReady }) {
		return
	}
	x.Verdict = Waits
	x.Reason = fmt.Sprintf("it has waited for its tokens for %s, and no agent has reported about it. A cluster admin sees whether an agent works with: kubectl get lease %s -n %s, and why not with: credence doctor",
		waited.Round(time.Second), rights.AgentAccount, rights.SystemNamespace)
}

// waitsForAnother reports whether a pod waits for a Secret that its account does not give new pods.
func (x *Pod) waitsForAnother() bool {
	return x.Waiting != nil && x.Waiting.Reason == "SecretMissing" &&
		!slices.ContainsFunc(x.Identities, func(in *Identity) bool { return in.Secret != "" && strings.Contains(x.Waiting.Message, in.Secret) })
}
