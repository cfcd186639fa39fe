package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ContextReview is what the server knows of a context object: what it uses, on which clusters it is, what is delivered there, and which tokens
// there would be. It is created and not stored, as a SelfSubjectAccessReview is. It holds no token, and nothing that its creator may not get.
type ContextReview struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the object.
	Spec ContextReviewSpec `json:"spec"`
	// status is what is known of it; the server fills it in.
	// +optional
	Status ContextReviewStatus `json:"status,omitempty"`
}

// ContextReviewSpec names an object.
type ContextReviewSpec struct {
	// contextObject is the object. Its version may be any that the API serves.
	ContextObject DeliveryContext `json:"contextObject"`
}

// ContextReviewStatus is what is known of an object.
type ContextReviewStatus struct {
	// contextKind is the name of the ContextKind of the object.
	// +optional
	ContextKind string `json:"contextKind,omitempty"`
	// contextObject is the object as requests for tokens must name it.
	// +optional
	ContextObject *DeliveryContext `json:"contextObject,omitempty"`
	// clusters are the names of the WorkloadClusters that the object is on.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// clustersProblem is why it is not known on which clusters the object is: then it is on none.
	// +optional
	ClustersProblem string `json:"clustersProblem,omitempty"`
	// references are the identities and bindings that the object uses.
	// +optional
	References []ReviewedReference `json:"references,omitempty"`
	// problem is why others are not known that the object refers to.
	// +optional
	Problem string `json:"problem,omitempty"`
	// deliveries are the Secrets that the object needs in its clusters.
	// +optional
	Deliveries []ReviewedDelivery `json:"deliveries,omitempty"`
	// renewal is the request for new tokens by the object's annotation gardener.cloud/operation, as the deliveries have it.
	// +optional
	Renewal string `json:"renewal,omitempty"`
	// unknown is what is left out, each with the right that the creator of the review lacks, or the cause.
	// +optional
	Unknown []string `json:"unknown,omitempty"`
}

// ReviewedReference is an identity that an object uses, or a binding.
type ReviewedReference struct {
	// workloadIdentity is the identity. Absent if it is that of a binding which the creator of the review may not get.
	// +optional
	WorkloadIdentity *NamespacedReference `json:"workloadIdentity,omitempty"`
	// credentialsBinding is the binding by which the object refers to it. Absent if it refers to it directly.
	// +optional
	CredentialsBinding *NamespacedReference `json:"credentialsBinding,omitempty"`
	// secret is the Secret that the binding refers to: its data is delivered in place of tokens.
	// +optional
	Secret *NamespacedReference `json:"secret,omitempty"`
	// problem is why there are no tokens by it, and no data.
	// +optional
	Problem string `json:"problem,omitempty"`
	// unknown is the right that the creator of the review lacks to know more.
	// +optional
	Unknown string `json:"unknown,omitempty"`
	// tokens are what each caller would get; where secret is set, the agent of each cluster its data.
	// +optional
	Tokens []ReviewedToken `json:"tokens,omitempty"`
}

// ReviewedToken is what a request for a token would be answered with, or one for data.
type ReviewedToken struct {
	// cluster is the WorkloadCluster whose agent requests it; empty: the creator of the review does.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// claims are those that each token has, without times and jti. Absent if the request is refused, or one for data.
	// +optional
	Claims *runtime.RawExtension `json:"claims,omitempty"`
	// code is the status code of a refusal.
	// +optional
	Code int32 `json:"code,omitempty"`
	// refused is why there is no token, or no data.
	// +optional
	Refused string `json:"refused,omitempty"`
	// unknown is the right that the creator of the review lacks to know the answer.
	// +optional
	Unknown string `json:"unknown,omitempty"`
}

// ReviewedDelivery is a Secret that an object needs in a cluster.
type ReviewedDelivery struct {
	// cluster is the WorkloadCluster.
	Cluster string `json:"cluster"`
	// secret is the Secret in it. Both of its members are empty if it is not known: then problem has the cause.
	Secret DeliveredSecret `json:"secret"`
	// workloadIdentity is the identity whose tokens are delivered. Absent if it is not known.
	// +optional
	WorkloadIdentity *NamespacedReference `json:"workloadIdentity,omitempty"`
	// credentialsBinding is the binding by which the object refers to it.
	// +optional
	CredentialsBinding *NamespacedReference `json:"credentialsBinding,omitempty"`
	// problem is why nothing is delivered now.
	// +optional
	Problem string `json:"problem,omitempty"`
	// unknown is the right that the creator of the review lacks to know more.
	// +optional
	Unknown string `json:"unknown,omitempty"`
}
