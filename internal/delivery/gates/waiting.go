package gates

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

const (
	// Untold is for how long a pod waits before that is reported: most tokens are there at once.
	Untold = 10 * time.Second
	// WaitLook is how often a pod that waits is looked at, and the least time between two reports of it.
	WaitLook = time.Minute
	// maxConditionMessage bounds what is written of a failure, in bytes.
	maxConditionMessage = 1024
)

// waits reports, as an Event and a condition, why a pod waits for a token, and returns after how long it is looked at again. Both are
// written when the reason changes, and anew every ten minutes; lastProbeTime keeps when they were.
func (g *Controller) waits(ctx context.Context, pod *corev1.Pod, secret string, exists bool) (time.Duration, error) {
	now := g.Clock.Now()
	if early := Untold - now.Sub(pod.CreationTimestamp.Time); early > 0 {
		return early, nil
	}
	reason, what, why := "TokenMissing", "has no token yet", g.OfSecret(types.NamespacedName{Namespace: pod.Namespace, Name: secret}).Message
	if !exists {
		account := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
		reason, what, why = "SecretMissing", "does not exist yet", g.OfAccount(account).Message
		if given, err := g.gives(ctx, account, secret); err != nil {
			return 0, err
		} else if !given {
			why = "service account " + account.String() + " does not name the identity of this Secret any more: create the pod anew, or name the identity again"
		}
	}
	if why == "" {
		why = "the agent has seen nothing that is in the way; see credence explain pod " + pod.Name + " -n " + pod.Namespace
	}
	message := "the pod is not scheduled, as its Secret " + secret + " " + what + ": " + why
	if len(message) > maxConditionMessage {
		message = strings.ToValidUTF8(message[:maxConditionMessage], "") + "…"
	}
	condition := corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if has := Waiting(pod); has != nil {
		same := has.Status == condition.Status && has.Reason == reason && has.Message == message
		if written := now.Sub(has.LastProbeTime.Time); written >= 0 && (written < WaitLook || same && written < failures.Again) {
			return WaitLook, nil
		}
	}
	written, err := g.condition(ctx, pod, condition)
	if err != nil {
		return 0, err
	}
	g.Events.Workload.Event(workload.Reference("v1", "Pod", pod.Namespace, pod.Name, string(pod.UID)), corev1.EventTypeWarning, "WaitingForToken", message)
	if !written {
		return failures.Again, nil // there is the Event
	}
	return WaitLook, nil
}

// gives reports whether a service account names the identity of a Secret. One whose list can't be understood may.
func (g *Controller) gives(ctx context.Context, key types.NamespacedName, secret string) (bool, error) {
	account := workload.NewAccount()
	if err := g.Client.Get(ctx, key, account); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	names, err := workload.Identities(ctx, g.Client, account)
	if errors.Is(err, workload.ErrList) {
		return true, nil
	}
	return slices.ContainsFunc(names, func(name string) bool { return tokensecret.NameFor(key.Name, name) == secret }), err
}

// Waiting returns the condition of a pod that waits, or has waited, for its tokens; nil without one.
func Waiting(pod *corev1.Pod) *corev1.PodCondition {
	if index := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.ConditionTokenReady }); index >= 0 {
		return &pod.Status.Conditions[index]
	}
	return nil
}

// condition writes whether a pod has its tokens. Other conditions stay as they are. It is not written, without an error, where there is
// no right to conditions, and where the pod has gone.
func (g *Controller) condition(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition) (written bool, err error) {
	condition.Type, condition.LastProbeTime = v1alpha1.ConditionTokenReady, metav1.NewTime(g.Clock.Now())
	condition.LastTransitionTime = condition.LastProbeTime
	if has := Waiting(pod); has != nil && has.Status == condition.Status {
		condition.LastTransitionTime = has.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		panic(err) // strings and times always have a JSON form
	}
	err = g.Client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}
