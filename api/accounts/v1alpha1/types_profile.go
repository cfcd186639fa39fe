package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=saprofile,categories=credence
// +kubebuilder:printcolumn:name="Username",type=string,JSONPath=`.status.username`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.securityContext.mode`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods.total`
// +kubebuilder:printcolumn:name="Out-Of-Spec",type=integer,JSONPath=`.status.pods.outOfSpec`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ServiceAccountProfile is what the service account of the same name and namespace stands for: a name outside of the cluster, a security context,
// Secrets and workload identities. It may exist before the account.
type ServiceAccountProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what pods of the account get, and what they may have.
	// +optional
	Spec ServiceAccountProfileSpec `json:"spec,omitempty"`
	// status is written by credence-server profiles alone.
	// +optional
	Status ServiceAccountProfileStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ServiceAccountProfileList is a list of ServiceAccountProfiles.
type ServiceAccountProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceAccountProfile `json:"items"`
}

// ServiceAccountProfileSpec is what pods of an account get, and what they may have. Lists whose absence differs from an empty one are atomic: of
// a set, server-side apply drops the empty one.
type ServiceAccountProfileSpec struct {
	// username is the name of the account outside of the cluster. Without one it is the name that the cluster's template gives it. To set it needs
	// the cluster-wide verb "set-username" on serviceaccountprofiles. It is unique in the cluster, and never begins with "system:".
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9@._:/+-]*[A-Za-z0-9])?$')",message="must begin and end with a letter or digit, with no other signs than @ . _ : / + - between"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="must not begin with system:, which are names of the cluster itself"
	Username string `json:"username,omitempty"`
	// workloadIdentities are the names of those that pods of the account have, in place of the annotation
	// identity.credence.dev/workload-identities of the account: both at once are refused. Without this field the annotation holds; an empty list
	// means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, self.exists_one(other, other == name))",message="must have each name once"
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	WorkloadIdentities []string `json:"workloadIdentities,omitzero"`
	// securityContext is that of pods of the account.
	// +optional
	SecurityContext *ProfileSecurityContext `json:"securityContext,omitempty"`
	// secrets are those that pods of the account may have, and those that they pull images with.
	// +optional
	Secrets *ProfileSecrets `json:"secrets,omitempty"`
	// automountToken is filled in where a pod leaves open whether it gets a token of its account, before the account's own default.
	// +optional
	AutomountToken *bool `json:"automountToken,omitempty"`
	// onChange is what happens to pods that no longer match when this profile, or what it refers to, has changed.
	// +optional
	// +kubebuilder:default=Report
	OnChange OnChange `json:"onChange,omitempty"`
}

// OnChange is what happens to pods that no longer match.
// +kubebuilder:validation:Enum=Report;BlockNew;Restart;Evict
type OnChange string

const (
	// OnChangeReport reports them in status, and does nothing else.
	OnChangeReport OnChange = "Report"
	// OnChangeBlockNew refuses new pods with old values, which Default would let through.
	OnChangeBlockNew OnChange = "BlockNew"
	// OnChangeRestart restarts their workloads, one at a time, at their own strategy.
	OnChangeRestart OnChange = "Restart"
	// OnChangeEvict evicts them, as disruption budgets allow.
	OnChangeEvict OnChange = "Evict"
)

// ProfileSecrets are Secrets of the profile's namespace.
type ProfileSecrets struct {
	// allowed are the names of those that pods of the account may mount, project, read into variables, or pull images with, beside the token
	// Secrets of their workload identities. Without this field any; an empty list means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Allowed []string `json:"allowed,omitzero"`
	// imagePull are filled in as imagePullSecrets of pods that have none. They are allowed, too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ImagePull []string `json:"imagePull,omitempty"`
}

// ServiceAccountProfileStatus is what became of a profile.
type ServiceAccountProfileStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// username is the name of the account outside of the cluster. It is empty while another account has it.
	// +optional
	Username string `json:"username,omitempty"`
	// pods counts the running pods of the account.
	// +optional
	Pods *ProfilePods `json:"pods,omitempty"`
	// restart is the last restart of a workload for onChange: Restart, until it has ended well: its pods are ready, and as they would be made today.
	// +optional
	// +structType=atomic
	Restart *ProfileRestart `json:"restart,omitempty"`
	// conditions are Ready, Enforced, InSpec and UsernameUnique.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Types of conditions.
const (
	ConditionReady          = "Ready"
	ConditionEnforced       = "Enforced"
	ConditionInSpec         = "InSpec"
	ConditionUsernameUnique = "UsernameUnique"
)

// Reasons of ConditionInSpec when pods are not replaced any more.
const (
	ReasonEvictionsStopped = "EvictionsStopped"
	ReasonRestartsStopped  = "RestartsStopped"
)

// ProfilePods counts the running pods of an account.
type ProfilePods struct {
	// total is how many run.
	Total int32 `json:"total"`
	// outOfSpec is how many of them would be another pod, or refused, if they were made today.
	OutOfSpec int32 `json:"outOfSpec"`
	// first are the first twenty of these, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	First []OutOfSpecPod `json:"first,omitempty"`
}

// OutOfSpecPod is a running pod, and the first difference to the pod that it would be today.
type OutOfSpecPod struct {
	// name of the pod.
	Name string `json:"name"`
	// field is the path of the first field that differs, for example spec.securityContext.runAsUser. It is empty if the pod would be refused.
	// +optional
	Field string `json:"field,omitempty"`
	// has is the value of the field in the pod; empty if it has none.
	// +optional
	Has string `json:"has,omitempty"`
	// wants is the value that it would have; empty if it would have none.
	// +optional
	Wants string `json:"wants,omitempty"`
	// refused is why a pod like it would be refused.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// ProfileRestart is the restart of a workload. It is written before the workload is, so that no other process makes two restarts of one.
type ProfileRestart struct {
	// kind of the workload: Deployment, StatefulSet or DaemonSet.
	Kind string `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// uid of the workload.
	UID types.UID `json:"uid"`
	// wants are the differences that it is restarted for: fields of its pods, and what they would have today.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Wants []string `json:"wants"`
	// at is the value of the annotation kubectl.kubernetes.io/restartedAt that its template gets.
	At string `json:"at"`
	// begun reports whether the template has been seen with it.
	// +optional
	Begun bool `json:"begun,omitempty"`
}
