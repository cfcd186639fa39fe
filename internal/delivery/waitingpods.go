package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// untold is for how long a pod waits before that is reported: most tokens are there at once.
	untold = 10 * time.Second
	// waitLook is how often a pod that waits is looked at, and the least time between two reports of it.
	waitLook = time.Minute
	// maxConditionMessage bounds what is written of a failure, in bytes.
	maxConditionMessage = 1024
)

// waits reports, as an Event and a condition, why a pod waits for a token, and returns after how long it is looked at again. Both are
// written when the reason changes, and anew every ten minutes; lastProbeTime keeps when they were.
func (g *gates) waits(ctx context.Context, pod *corev1.Pod, secret string, exists bool) (time.Duration, error) {
	now := g.clock.Now()
	if early := untold - now.Sub(pod.CreationTimestamp.Time); early > 0 {
		return early, nil
	}
	reason, what, why := "TokenMissing", "has no token yet", g.secrets.get(types.NamespacedName{Namespace: pod.Namespace, Name: secret}).reported.message
	if !exists {
		reason, what, why = "SecretMissing", "does not exist yet", g.accounts.get(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}).reported.message
	}
	if why == "" {
		why = "the agent has seen nothing that is in the way; see credence explain pod " + pod.Name + " -n " + pod.Namespace
	}
	message := "the pod is not scheduled, as its Secret " + secret + " " + what + ": " + why
	if len(message) > maxConditionMessage {
		message = strings.ToValidUTF8(message[:maxConditionMessage], "") + "…"
	}
	condition := corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if has := waitingOf(pod); has != nil {
		same := has.Status == condition.Status && has.Reason == reason && has.Message == message
		if written := now.Sub(has.LastProbeTime.Time); written >= 0 && (written < waitLook || same && written < again) {
			return waitLook, nil
		}
	}
	written, err := g.condition(ctx, pod, condition)
	if err != nil {
		return 0, err
	}
	g.events.workload.Event(reference("v1", "Pod", pod.Namespace, pod.Name, string(pod.UID)), corev1.EventTypeWarning, "WaitingForToken", message)
	if !written {
		return again, nil // there is the Event
	}
	return waitLook, nil
}

// waitingOf returns the condition of a pod that waits, or has waited, for its tokens; nil without one.
func waitingOf(pod *corev1.Pod) *corev1.PodCondition {
	if index := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.ConditionTokenReady }); index >= 0 {
		return &pod.Status.Conditions[index]
	}
	return nil
}

// condition writes whether a pod has its tokens. Other conditions stay as they are. It is not written, without an error, where there is
// no right to conditions, and where the pod has gone.
func (g *gates) condition(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition) (written bool, err error) {
	condition.Type, condition.LastProbeTime = v1alpha1.ConditionTokenReady, metav1.NewTime(g.clock.Now())
	condition.LastTransitionTime = condition.LastProbeTime
	if has := waitingOf(pod); has != nil && has.Status == condition.Status {
		condition.LastTransitionTime = has.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		panic(err) // strings and times always have a JSON form
	}
	err = g.client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}
