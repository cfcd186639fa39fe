package drift

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/cluster"
)

// object has what is read of a controller of pods, whatever its kind.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas       *int            `json:"replicas"`
		Selector       json.RawMessage `json:"selector"` // of a ReplicationController it is another type
		Paused         bool            `json:"paused"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Template struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				ServiceAccountName string `json:"serviceAccountName"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64 `json:"observedGeneration"`
		Replicas               int   `json:"replicas"`
		UpdatedReplicas        int   `json:"updatedReplicas"`
		ReadyReplicas          int   `json:"readyReplicas"`
		AvailableReplicas      int   `json:"availableReplicas"`
		DesiredNumberScheduled int   `json:"desiredNumberScheduled"`
		UpdatedNumberScheduled int   `json:"updatedNumberScheduled"`
		NumberReady            int   `json:"numberReady"`
		NumberAvailable        int   `json:"numberAvailable"`
	} `json:"status"`
}

// perNode reports whether it is a DaemonSet, whose status has other counters.
func (o *object) perNode() bool { return o.Spec.Replicas == nil }

func (o *object) desired() int {
	if o.perNode() {
		return o.Status.DesiredNumberScheduled
	}
	return *o.Spec.Replicas
}

func (o *object) ready() int {
	if o.perNode() {
		return o.Status.NumberReady
	}
	return o.Status.ReadyReplicas
}

// account is the service account of its pods.
func (o *object) account() string { return cmp.Or(o.Spec.Template.Spec.ServiceAccountName, "default") }

// selects reports whether its selector matches a pod.
func (o *object) selects(p *pod) bool {
	var written *metav1.LabelSelector
	if json.Unmarshal(o.Spec.Selector, &written) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(written)
	return err == nil && selector.Matches(labels.Set(p.labels))
}

// neighborhood is what one look reads of a namespace besides its pods, each kind once: the authors of pods choose how many owners they name, and how.
type neighborhood struct {
	api       *cluster.API
	namespace string

	kinds   map[string]map[types.UID]*object
	budgets []budget
	counted bool // the budgets were read
}

// controller returns a controller of pods; nil if it is gone, or of a kind whose pods are not counted.
func (n *neighborhood) controller(ctx context.Context, owner *metav1.OwnerReference) (*object, error) {
	api, resource, ok := placeOf(owner)
	if !ok {
		return nil, nil
	}
	if found, read := n.kinds[owner.Kind]; read {
		return found[owner.UID], nil
	}
	found := map[types.UID]*object{}
	if err := cluster.Each(ctx, n.api, cluster.Listing{API: api, Namespace: n.namespace, Resource: resource}, func(o *object) {
		o.ManagedFields, o.Annotations = nil, nil
		found[o.UID] = o
	}); err != nil {
		return nil, fmt.Errorf("list the %s of namespace %s: %w", resource, n.namespace, err)
	}
	if n.kinds == nil {
		n.kinds = map[string]map[types.UID]*object{}
	}
	n.kinds[owner.Kind] = found
	return found[owner.UID], nil
}

// workload returns the Deployment, StatefulSet or DaemonSet of an account whose template makes a pod again, and its kind; nil if none does. The
// author of a pod chooses its owners, so that the workload itself is read. A Deployment has its pods by way of a ReplicaSet alone.
func (n *neighborhood) workload(ctx context.Context, account string, p *pod) (*object, string, error) {
	owner := p.controller
	if owner == nil || owner.APIVersion != appsVersion || owner.Kind == "Deployment" {
		return nil, "", nil
	}
	if owner.Kind == "ReplicaSet" {
		set, err := n.controller(ctx, owner)
		if set == nil {
			return nil, "", err
		}
		if owner = metav1.GetControllerOf(set); owner == nil || owner.APIVersion != appsVersion || owner.Kind != "Deployment" {
			return nil, "", nil
		}
	}
	found, err := n.controller(ctx, owner)
	if found == nil || found.account() != account || !found.selects(p) {
		return nil, "", err
	}
	return found, owner.Kind, nil
}

// disruptions are the PodDisruptionBudgets.
func (n *neighborhood) disruptions(ctx context.Context) ([]budget, error) {
	if n.counted {
		return n.budgets, nil
	}
	type read struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
		Status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
			DisruptionsAllowed int   `json:"disruptionsAllowed"`
		} `json:"status"`
	}
	n.budgets = nil
	listing := cluster.Listing{API: "/apis/policy/v1", Namespace: n.namespace, Resource: "poddisruptionbudgets"}
	if err := cluster.Each(ctx, n.api, listing, func(o *read) {
		selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
		if err != nil {
			selector = labels.Everything()
		}
		n.budgets = append(n.budgets, budget{name: o.Name, selector: selector, allows: o.Status.ObservedGeneration >= o.Generation && o.Status.DisruptionsAllowed > 0})
	}); err != nil {
		return nil, fmt.Errorf("list the PodDisruptionBudgets of namespace %s: %w", n.namespace, err)
	}
	n.counted = true
	return n.budgets, nil
}
