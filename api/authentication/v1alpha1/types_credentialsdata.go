package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsDataRequest requests the data of the Secret to which a CredentialsBinding refers. It is created on
// credentialsbindings/<name>/data by the agent of a workload cluster, and never stored.
type CredentialsDataRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may have the name of the binding; a uid in it is a precondition.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec states for which object the data is requested.
	// +optional
	Spec CredentialsDataRequestSpec `json:"spec,omitempty"`
	// status holds the data in the server's answer; what a client sends here is ignored.
	// +optional
	Status CredentialsDataRequestStatus `json:"status,omitempty"`
}

// CredentialsDataRequestSpec describes the request.
type CredentialsDataRequestSpec struct {
	// contextObject is an object of a ContextKind that is on the caller's cluster and refers to the binding. Without it the WorkloadCluster must
	// list the namespace of the binding, and the caller must be allowed to use the binding.
	// +optional
	ContextObject *ContextObject `json:"contextObject,omitempty"`
}

// CredentialsDataRequestStatus is the server's answer.
type CredentialsDataRequestStatus struct {
	// data is that of the Secret.
	// +optional
	Data map[string][]byte `json:"data,omitempty"`
}
