package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=credence
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// NamespaceTemplate is what namespaces have from the beginning: labels, service accounts with profiles, and RoleBindings. To delete it leaves
// all of that. In names and values, {namespace} is the name of the namespace.
type NamespaceTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is which namespaces, and what they have.
	Spec NamespaceTemplateSpec `json:"spec"`
	// status is written by credence-server profiles alone.
	// +optional
	Status NamespaceTemplateStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// NamespaceTemplateList is a list of NamespaceTemplates.
type NamespaceTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NamespaceTemplate `json:"items"`
}

// NamespaceTemplateSpec is which namespaces, and what they have.
type NamespaceTemplateSpec struct {
	// namespaceSelector selects namespaces by their labels. It must select by something: kube-system and the like are namespaces, too.
	// +kubebuilder:validation:XValidation:rule="size(self.?matchLabels.orValue({})) + size(self.?matchExpressions.orValue([])) > 0",message="must select by at least one label"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
	// labels of the namespace: account-use, delivery, profiles and workload-identities of identity.credence.dev, and those of Pod Security, which are only ever raised.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// serviceAccounts to be there. That of the name default is there already.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ServiceAccounts []TemplateServiceAccount `json:"serviceAccounts,omitempty"`
	// roleBindings to be there.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	RoleBindings []TemplateRoleBinding `json:"roleBindings,omitempty"`
}

// TemplateServiceAccount is a service account, and its profile.
type TemplateServiceAccount struct {
	// name of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// annotations of the service account.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Annotations map[string]string `json:"annotations,omitempty"`
	// automountToken is automountServiceAccountToken of the service account.
	// +optional
	AutomountToken *bool `json:"automountToken,omitempty"`
	// profile is the spec of its ServiceAccountProfile. Without one none is made.
	// +optional
	Profile *ServiceAccountProfileSpec `json:"profile,omitempty"`
}

// TemplateRoleBinding gives subjects a ClusterRole that exists, in the namespace.
type TemplateRoleBinding struct {
	// name of the RoleBinding.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// clusterRole is the name of the ClusterRole. The writer of the template needs the verb bind on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterRole string `json:"clusterRole"`
	// serviceAccounts of the namespace that get it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// groups that get it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Groups []string `json:"groups,omitempty"`
}

// NamespaceTemplateStatus is what became of a template.
type NamespaceTemplateStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// namespaces is how many the template selects.
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`
	// incomplete are the namespaces that lack something, or in which something is another's: the first hundred, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Incomplete []IncompleteNamespace `json:"incomplete,omitempty"`
	// conditions are Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IncompleteNamespace is a namespace that lacks something of a template.
type IncompleteNamespace struct {
	// name of the namespace.
	Name string `json:"name"`
	// reason in one word.
	Reason string `json:"reason"`
	// message is what is missing, and why.
	Message string `json:"message"`
}
