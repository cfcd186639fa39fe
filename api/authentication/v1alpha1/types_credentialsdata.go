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
	// status holds the data in the server's answer; what a client sends here is ignored.
	// +optional
	Status CredentialsDataRequestStatus `json:"status,omitempty"`
}

// CredentialsDataRequestStatus is the server's answer.
type CredentialsDataRequestStatus struct {
	// data is that of the Secret.
	// +optional
	Data map[string][]byte `json:"data,omitempty"`
}
