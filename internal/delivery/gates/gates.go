// Package gates lets pods be scheduled once their tokens exist, and reports why they wait until then. In go pods with the agent's gate; out
// come pods without it, and conditions.
package gates

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/workload"
)

// Needs are what a Controller works with.
type Needs struct {
	Client client.Client
	Clock  clock.PassiveClock
	Events workload.Events
	// OfSecret and OfAccount return the last failure of a Secret, and of a service account.
	OfSecret, OfAccount func(key types.NamespacedName) failures.Failure
	// Released is called when a pod has lost the gate.
	Released func()
}

// Controller removes the scheduling gate of pods all of whose tokens exist.
type Controller struct{ Needs }

// New returns a Controller.
func New(needs Needs) *Controller { return &Controller{needs} }

// Reconcile looks at one pod.
func (g *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := g.Client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	index := Of(&pod)
	if index < 0 || pod.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	for _, name := range workload.TokenSecrets(&pod) {
		var secret corev1.Secret
		err := g.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &secret)
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
	if has := Waiting(&pod); has != nil && has.Status != corev1.ConditionTrue {
		_, unshown = g.condition(ctx, &pod, corev1.PodCondition{Status: corev1.ConditionTrue, Reason: "TokensExist", Message: "the tokens of the pod exist"})
	}
	err := g.Client.Patch(ctx, &pod, client.RawPatch(types.JSONPatchType, removal(&pod, index)))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return reconcile.Result{}, nil // it has changed meanwhile, which queues it again
	}
	if err == nil {
		g.Released()
	}
	return reconcile.Result{}, errors.Join(unshown, err)
}

// Of returns the position of our gate, or -1.
func Of(pod *corev1.Pod) int {
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
