package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeReview is whether a node may create containers of a pod that the API has: whether the pod has what the profile of its service account wants
// (mode Enforce), and credential specs that are those of their objects, which its account may use. It is created and not stored. The server answers
// about pods of the caller's own node alone.
type NodeReview struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the pod.
	Spec NodeReviewSpec `json:"spec"`
	// status is the verdict; the server fills it in.
	// +optional
	Status NodeReviewStatus `json:"status,omitempty"`
}

// NodeReviewSpec names a pod of the caller's node, and a container of it.
type NodeReviewSpec struct {
	// namespace is that of the pod.
	Namespace string `json:"namespace"`
	// name is that of the pod.
	Name string `json:"name"`
	// uid is that of the pod: one that was deleted and created again has another one.
	UID string `json:"uid"`
	// container is the name of the container that is to be created. Empty: all that are not ephemeral.
	// +optional
	Container string `json:"container,omitempty"`
	// credentialSpec is the contents of the credential spec that the container runtime is to give the container (Windows); empty: none.
	// +optional
	CredentialSpec string `json:"credentialSpec,omitempty"`
}

// NodeReviewStatus is the verdict on a pod.
type NodeReviewStatus struct {
	// allowed is true if the containers may be created.
	// +optional
	Allowed bool `json:"allowed,omitempty"`
	// reason is why they may not: the field, its value, and who can change that.
	// +optional
	Reason string `json:"reason,omitempty"`
	// containers are the names of the containers that the verdict is about: an ephemeral one by itself, else all others of the pod.
	// +optional
	Containers []string `json:"containers,omitempty"`
}
