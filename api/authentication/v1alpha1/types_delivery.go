package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of WorkloadIdentities.
const (
	// ConditionReady is True unless a delivery of the identity's tokens fails, or the identity is being deleted.
	ConditionReady = "Ready"
	// ConditionDelivered is True if every Secret for the identity's tokens has a valid one, and Unknown if no Secret was reported.
	ConditionDelivered = "Delivered"
	// ConditionReferred is True while the identity is being deleted and CredentialsBindings refer to it, or a CredentialsBinding is being
	// deleted and consumers of other namespaces use it: its message names them.
	ConditionReferred = "Referred"
)

// Delivery is how tokens of an identity, or the credentials of a CredentialsBinding, are delivered, as one agent has reported it.
type Delivery struct {
	// reporter is the user name that the agent was authenticated with.
	Reporter string `json:"reporter"`
	// reportTime is when the server took the report.
	ReportTime metav1.Time `json:"reportTime"`
	// DeliveryReportSpec is what was reported.
	DeliveryReportSpec `json:",inline"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeliveryReport is what an agent sends of the delivery of an identity's tokens, or of the Secrets that name a CredentialsBinding. The
// server keeps the last one of each user in the status of the identity or binding.
type DeliveryReport struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may have the name of the identity or binding; a uid in it is a precondition.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is reported.
	Spec DeliveryReportSpec `json:"spec"`
}

// DeliveryReportSpec is how tokens of an identity are delivered.
type DeliveryReportSpec struct {
	// secrets is how many Secrets ask for tokens of the identity: 0 to 1000000. 0 takes the reporter's entry away after a minute. Required.
	Secrets int32 `json:"secrets"`
	// delivered is how many of them have a token: at most secrets. Required.
	Delivered int32 `json:"delivered"`
	// expires is when the first of these tokens expires; unset without a token.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// oldest is when the oldest of these tokens was issued; unset without a token, and by agents that do not report it.
	// +optional
	Oldest *metav1.Time `json:"oldest,omitempty"`
	// failure is why a Secret has no new token; unset if none fails.
	// +optional
	Failure *DeliveryFailure `json:"failure,omitempty"`
	// elsewhere is how many of the Secrets are in another namespace than a CredentialsBinding that is reported, or in another cluster: at
	// most secrets. Not set for identities.
	// +optional
	Elsewhere int32 `json:"elsewhere,omitempty"`
	// names are the first of these, as NAMESPACE/NAME: at most 5.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
}

// DeliveryFailure is why a Secret has no new token.
type DeliveryFailure struct {
	// reason is a word in CamelCase, at most 64 characters long, as in the agent's Events. Required.
	Reason string `json:"reason"`
	// message is what is wrong, and what to do: at most 1024 characters.
	// +optional
	Message string `json:"message,omitempty"`
}
