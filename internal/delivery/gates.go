package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// gates removes the scheduling gate of pods all of whose tokens exist.
type gates struct {
	client   client.Client
	clock    clock.PassiveClock
	events   Events
	secrets  *ledger // the last failures of Secrets
	accounts *ledger // and of service accounts
	recorder *Recorder
}

// Reconcile looks at one pod.
func (g *gates) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := g.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	index := gateOf(&pod)
	if index < 0 || pod.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	for _, name := range tokenSecrets(&pod) {
		var secret corev1.Secret
		err := g.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err != nil || len(secret.Data[v1alpha1.SecretToken]) == 0 {
			after, err := g.waits(ctx, &pod, name, err == nil)
			return reconcile.Result{RequeueAfter: after}, err // queued when it is filled
		}
	}
	// The condition is written first, as the agent follows pods with a gate only. A pod does not wait for it.
	var unshown error
	if has := waitingOf(&pod); has != nil && has.Status != corev1.ConditionTrue {
		_, unshown = g.condition(ctx, &pod, corev1.PodCondition{Status: corev1.ConditionTrue, Reason: "TokensExist", Message: "the tokens of the pod exist"})
	}
	err := g.client.Patch(ctx, &pod, client.RawPatch(types.JSONPatchType, removal(&pod, index)))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return reconcile.Result{}, nil // it has changed meanwhile, which queues it again
	}
	if err == nil {
		g.recorder.gates.Inc()
	}
	return reconcile.Result{}, errors.Join(unshown, err)
}

// gateOf returns the position of our gate, or -1.
func gateOf(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == v1alpha1.GateToken })
}

// removal is the patch that removes the gate, if it is still where it was.
func removal(pod *corev1.Pod, index int) []byte {
	path := "/spec/schedulingGates/" + strconv.Itoa(index)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": pod.UID},
		{"op": "test", "path": path + "/name", "value": v1alpha1.GateToken},
		{"op": "remove", "path": path},
	})
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return patch
}

// tokenSecrets returns the names of the agent's Secrets that a pod mounts.
func tokenSecrets(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil && strings.HasPrefix(source.Secret.Name, tokensecret.NamePrefix) {
				names = append(names, source.Secret.Name)
			}
		}
	}
	return names
}
