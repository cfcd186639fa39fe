package boundtoken

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/identity"
)

// The extras of a user that a bound token states, as Kubernetes names them.
const (
	podName  = "authentication.kubernetes.io/pod-name"
	podUID   = "authentication.kubernetes.io/pod-uid"
	nodeName = "authentication.kubernetes.io/node-name"
	nodeUID  = "authentication.kubernetes.io/node-uid"
)

// longestExtra bounds what a caller can make a program repeat in messages and audit events.
const longestExtra = 253

// Caller is a service account that authenticated with a token bound to a pod.
type Caller struct {
	types.NamespacedName
	// UID is the account's. API servers before Kubernetes 1.33 do not pass it on to aggregated ones.
	UID types.UID
	// Pod is bound to the token, and is on Node.
	Pod, Node Object
}

// Object is an object that a token names.
type Object struct{ Name, UID string }

// Read returns the account and the pod of a user, or why the user is not the account of a pod.
func Read[Values ~[]string](user string, uid types.UID, extra map[string]Values) (caller Caller, refusal string) {
	account, ok := account(user)
	if !ok {
		return Caller{}, fmt.Sprintf("user %q is not a service account: only pods get tokens here, by a token of their own; others create workloadidentities/token", user)
	}
	value := func(key string) string {
		if values := extra[key]; len(values) == 1 && len(values[0]) <= longestExtra && identity.Printable(values[0]) {
			return values[0]
		}
		return ""
	}
	caller = Caller{NamespacedName: account, UID: uid, Pod: Object{value(podName), value(podUID)}, Node: Object{value(nodeName), value(nodeUID)}}
	switch {
	case len(validation.NameIsDNSSubdomain(caller.Pod.Name, false)) > 0 || caller.Pod.UID == "":
		return Caller{}, fmt.Sprintf("the token of service account %s is not bound to a pod: send the one that the kubelet gives a pod or a CSI driver, not one of a Secret, or one that was requested without a pod", account)
	case caller.Node.Name == "":
		return Caller{}, fmt.Sprintf("the token of pod %s/%s names no node: it was issued before the pod was on one, or by an API server before Kubernetes 1.30", account.Namespace, caller.Pod.Name)
	}
	return caller, ""
}

// account is the service account that a user is.
func account(user string) (types.NamespacedName, bool) {
	text, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, parts := strings.Cut(text, ":")
	valid := ok && parts && len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0
	return types.NamespacedName{Namespace: namespace, Name: name}, valid
}

// Subject is the account as a user. A deleted account of this name has the same rights.
func (c Caller) Subject() authority.Subject {
	return authority.ServiceAccount(c.Namespace, c.Name, string(c.UID))
}

// Context is the account, with its uid, as the context of a token.
func (c Caller) Context(uid types.UID) *v1alpha1.ContextObject {
	return &v1alpha1.ContextObject{APIVersion: "v1", Kind: "ServiceAccount", Namespace: c.Namespace, Name: c.Name, UID: uid}
}
