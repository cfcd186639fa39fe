package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TokenRequest requests a token of a WorkloadIdentity. It is created on workloadidentities/<name>/token, or by a pod for itself on
// workloadidentities/<name>/selftoken, and never stored.
type TokenRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name or namespace given must be that of the WorkloadIdentity.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec describes the requested token.
	// +optional
	Spec TokenRequestSpec `json:"spec,omitempty"`
	// status holds the token in the server's answer; what a client sends here is ignored.
	// +optional
	Status TokenRequestStatus `json:"status,omitempty"`
}

// TokenRequestSpec describes the requested token.
type TokenRequestSpec struct {
	// contextObject is the object on whose behalf the token is used; it becomes part of the token's claims. The caller
	// must be it, or be allowed to get and to impersonate it, and it must be allowed to use the WorkloadIdentity. On selftoken it is the
	// service account of the pod, which may be left out.
	// +optional
	ContextObject *ContextObject `json:"contextObject,omitempty"`
	// duration is how long the token is to be valid, as a Go duration such as 48h; at least 10m. Defaults to the server's
	// default (1h). Longer than the server's maximum, it is shortened with a warning; on selftoken longer than the default is refused.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// CauseNoSigningKey is the cause in the details of an answer 503 if no key of the algorithm may sign at present; tokens of other
// target systems may be issued meanwhile.
const CauseNoSigningKey metav1.CauseType = "NoSigningKey"

// ContextObject refers to an object by name and by uid.
type ContextObject struct {
	// apiVersion is the API group and version of the object, such as v1. Required.
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the object, such as ServiceAccount. Required.
	Kind string `json:"kind"`
	// name is the name of the object. Required.
	Name string `json:"name"`
	// namespace is the namespace of the object. Required for namespaced kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// uid is the uid of the object: a namesake created later is another object. Required.
	UID types.UID `json:"uid"`
}

// TokenRequestStatus is the server's answer.
type TokenRequestStatus struct {
	// token is the signed JSON Web Token.
	// +optional
	Token string `json:"token,omitempty"`
	// expirationTimestamp is when the token expires; equal to its exp claim.
	// +optional
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp,omitempty"`
	// targetSystem is that of the identity, for the files beside the token. It is set for selftoken alone: a pod's service account need not
	// be allowed to read the identity.
	// +optional
	TargetSystem *TargetSystem `json:"targetSystem,omitempty"`
}
