package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadClusters is the namespace of the service accounts by which joined clusters are known. Each is of exactly one WorkloadCluster, or
// gets no tokens.
const WorkloadClusters = "workload-clusters"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadCluster is another cluster, whose agent gets tokens of the identities of this one (GEP-26 names it a seed). Each token has the
// name and the uid of this object in its claim gardener.cloud.seed.
type WorkloadCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec lists the users of the cluster, and the identities that they may have.
	// +optional
	Spec WorkloadClusterSpec `json:"spec,omitempty"`
	// status is what the server knows of the cluster by the requests of its users. It is never written by others.
	// +optional
	Status WorkloadClusterStatus `json:"status,omitempty"`
}

// WorkloadClusterStatus is what is known of a cluster by the requests of its users.
type WorkloadClusterStatus struct {
	// lastSeenTime is when one of the users last was given a token, or reported a delivery, give or take some minutes.
	// +optional
	LastSeenTime *metav1.Time `json:"lastSeenTime,omitempty"`
	// agentVersion is the version of Credence that the cluster's agent had when it last reported a delivery.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
}

// WorkloadClusterSpec lists the users of a cluster, and the identities that they may have.
type WorkloadClusterSpec struct {
	// users are the names of the users who get tokens for the cluster, mostly its agent: at most 10. No two clusters have one in common.
	// +optional
	// +listType=set
	Users []string `json:"users,omitempty"`
	// identities are those whose tokens the users may get, as far as RBAC allows it, too.
	// +optional
	Identities WorkloadClusterIdentities `json:"identities,omitempty"`
}

// WorkloadClusterIdentities are the identities whose tokens the users of a cluster may get.
type WorkloadClusterIdentities struct {
	// namespaces are those whose identities the cluster may have, all of them: at most 1000.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// fromContexts lets the cluster have identities of other namespaces, too, as contexts of tokens: those that an object on the cluster
	// uses, by its ContextKind. Objects without a namespace, and what one object lends another, give it none of those.
	// +optional
	FromContexts bool `json:"fromContexts,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadClusterList is a list of WorkloadCluster objects.
type WorkloadClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the clusters.
	Items []WorkloadCluster `json:"items"`
}
