package contexts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/tokensecret"
)

// State is what has become of a delivery: a word for metrics.
type State string

// The states.
const (
	Delivered  State = "delivered"   // the Secret exists as it should
	Waiting    State = "waiting"     // until the agent has its right to the Secrets of the namespace
	NotEnabled State = "not_enabled" // the namespace has no label
	NotOwn     State = "not_own"     // another Secret has the name
	Conflict   State = "conflict"    // several objects need the same Secret
	Problem    State = "problem"     // the identity cluster reports one
	NotWritten State = "not_written" // the Secret could not be written
)

// States returns all states, for metrics.
func States() []State {
	return []State{Delivered, Waiting, NotEnabled, NotOwn, Conflict, Problem, NotWritten}
}

// reasons are the reasons of Events about the states that people look at.
var reasons = map[State]string{
	Waiting: "NamespaceNotBound", NotEnabled: "NamespaceNotEnabled", NotOwn: "SecretNotOwned", Conflict: "DeliveryConflict", Problem: "DeliveryProblem", NotWritten: "WriteFailed",
}

// facts are what is known of a Secret, and of what is to be delivered into it.
type facts struct {
	key        types.NamespacedName
	deliveries []*identityv1alpha1.ContextDelivery
	secret     *corev1.Secret // that the cache has; nil: none
	unplaced   bool           // it is not known which Secrets the context object of the Secret needs
	enabled    bool           // the namespace lets Secrets be made
	served     bool           // the agent has its Secrets
	made       bool           // the agent has made it, or was about to
}

// step is what is done about a Secret.
type step int

const (
	nothing step = iota
	forget       // nothing is to be delivered into it
	report
	create
	update
	remove
)

// action is a step, with what it needs.
type action struct {
	step     step
	state    State
	message  string // of a report
	delivery *identityv1alpha1.ContextDelivery
	secret   *corev1.Secret // to be written
}

// decide returns what is done about a Secret. It reads from top to bottom.
func decide(f facts) action {
	d, own := chosen(f), f.secret != nil && Marked(f.secret)
	refuse := func(state State, message string) action {
		if quiet := state == NotOwn || state == NotEnabled; quiet && !own && ofData(d) {
			return action{step: forget} // other software may deliver static credentials
		}
		return action{step: report, state: state, message: message, delivery: d}
	}
	switch {
	case len(f.deliveries) == 0 && own && !f.unplaced && f.secret.DeletionTimestamp == nil:
		return action{step: remove}
	case len(f.deliveries) == 0 && f.made && f.enabled && !f.served:
		return action{step: forget, message: fmt.Sprintf("Secret %s may still be there, though no context object needs it any more: the agent may not read Secrets of the namespace %s, and so does not delete it: there must be a RoleBinding %s in it, which credence-server binder creates; then it is deleted",
			f.key, f.key.Namespace, rights.AgentSecrets)}
	case len(f.deliveries) == 0:
		return action{step: forget}
	case d == nil:
		d = f.deliveries[0]
		return refuse(Conflict, fmt.Sprintf("Secret %s is to be made for another object, too, by its ContextKind; it is made once it is for one object alone", f.key))
	case f.secret != nil && !own:
		return refuse(NotOwn, notOwn(f.key))
	case own && f.secret.DeletionTimestamp != nil:
		return action{step: nothing} // made again once it has gone
	case d.Spec.Problem != "":
		return refuse(Problem, "nothing is delivered into Secret "+f.key.String()+": "+d.Spec.Problem)
	case d.Spec.WorkloadIdentity == nil && !ofData(d) || strings.HasPrefix(f.key.Name, tokensecret.NamePrefix):
		return refuse(Problem, fmt.Sprintf("nothing is delivered into Secret %s: its name begins with %s, which is kept for service accounts, or the identity is not known", f.key, tokensecret.NamePrefix))
	case rights.Reserved(f.key.Namespace):
		return refuse(NotEnabled, fmt.Sprintf("Secret %s is not made: nothing is delivered in the namespace %s, whatever its labels", f.key, f.key.Namespace))
	case !f.enabled:
		return refuse(NotEnabled, fmt.Sprintf("the namespace %s does not let Secret %s be made or renewed: a cluster admin allows it with: kubectl label namespace %s %s=%s",
			f.key.Namespace, f.key, f.key.Namespace, v1alpha1.LabelNamespaceContexts, v1alpha1.NamespaceEnabled))
	case !f.served:
		return refuse(Waiting, fmt.Sprintf("the agent may not read Secrets of the namespace %s, and so does not make %s: there must be a RoleBinding %s in it, which credence-server binder creates; an admin of the cluster can see whether that runs",
			f.key.Namespace, f.key, rights.AgentSecrets))
	case !own:
		return action{step: create, state: Delivered, delivery: d, secret: newSecret(d)}
	}
	if wanted := changed(f.secret, d); !equality.Semantic.DeepEqual(wanted, f.secret) {
		return action{step: update, state: Delivered, delivery: d, secret: wanted}
	}
	return action{step: nothing, state: Delivered}
}

// chosen returns the delivery that a Secret follows. Of several the identity cluster lets one object keep the Secret, and has a problem for the others.
// Where all have one, it is that for which the Secret was made, or the first. Nil if several have none: no object takes a Secret from another one.
func chosen(f facts) *identityv1alpha1.ContextDelivery {
	var made *identityv1alpha1.ContextDelivery
	var sound []*identityv1alpha1.ContextDelivery
	for _, d := range f.deliveries {
		if f.secret != nil && mark(f.secret) == d.Name {
			made = d
		}
		if d.Spec.Problem == "" {
			sound = append(sound, d)
		}
	}
	switch {
	case len(sound) == 1:
		return sound[0]
	case made == nil && len(sound) == 0 && len(f.deliveries) > 0:
		return f.deliveries[0]
	}
	return made
}

func notOwn(key types.NamespacedName) string {
	return fmt.Sprintf("Secret %s exists, and the agent has not made it: it is left alone; delete it, and the agent makes its own", key)
}
