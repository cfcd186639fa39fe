package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=credence
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// SecurityContextTemplate is a security context that profiles of any namespace can refer to, if their writers may use it.
type SecurityContextTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the security context.
	Spec SecurityContexts `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// SecurityContextTemplateList is a list of SecurityContextTemplates.
type SecurityContextTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SecurityContextTemplate `json:"items"`
}

// SecurityContexts are those of pods and containers, of the operating systems that have them.
// +kubebuilder:validation:XValidation:rule="!has(self.pod) || !has(self.pod.windowsOptions)",message="windowsOptions of pod are the field windows",fieldPath=".pod.windowsOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.container) || !has(self.container.windowsOptions)",message="windowsOptions of container are the field windows",fieldPath=".container.windowsOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.pod) || !has(self.pod.supplementalGroups) || size(self.pod.supplementalGroups) > 0 && size(self.pod.supplementalGroups) <= 256",message="must have 1 to 256 groups: to demand nothing of pods, leave the field out",fieldPath=".pod.supplementalGroups"
// +kubebuilder:validation:XValidation:rule="!has(self.pod) || !has(self.pod.sysctls) || size(self.pod.sysctls) > 0 && size(self.pod.sysctls) <= 256",message="must have 1 to 256 sysctls: to demand nothing of pods, leave the field out",fieldPath=".pod.sysctls"
// +kubebuilder:validation:XValidation:rule="!has(self.container) || !has(self.container.capabilities) || size(self.container.capabilities.?add.orValue([])) <= 256 && size(self.container.capabilities.?drop.orValue([])) <= 256",message="must have 256 capabilities at most",fieldPath=".container.capabilities"
type SecurityContexts struct {
	// pod is for spec.securityContext of Linux pods. Of it, Windows pods have runAsNonRoot.
	// +optional
	Pod *corev1.PodSecurityContext `json:"pod,omitempty"`
	// container is for securityContext of each container of Linux pods. Of it, Windows pods have runAsNonRoot.
	// +optional
	Container *corev1.SecurityContext `json:"container,omitempty"`
	// windows is for spec.securityContext.windowsOptions of Windows pods.
	// +optional
	Windows *corev1.WindowsSecurityContextOptions `json:"windows,omitempty"`
}

// Mode is what a profile's security context does to pods.
// +kubebuilder:validation:Enum=Default;Enforce
type Mode string

const (
	// ModeDefault fills in what a pod leaves open.
	ModeDefault Mode = "Default"
	// ModeEnforce does so too, and refuses pods with something weaker.
	ModeEnforce Mode = "Enforce"
)

// ProfileSecurityContext is inline, or a template.
// +kubebuilder:validation:XValidation:rule="!has(self.templateRef) || !(has(self.pod) || has(self.container) || has(self.windows))",message="either templateRef, or pod, container and windows"
type ProfileSecurityContext struct {
	// mode is what it does to pods.
	// +optional
	// +kubebuilder:default=Default
	Mode Mode `json:"mode,omitempty"`
	// templateRef is in place of pod, container and windows.
	// +optional
	TemplateRef *TemplateReference `json:"templateRef,omitempty"`
	// The fields of SecurityContexts.
	SecurityContexts `json:",inline"`
}

// TemplateReference names a SecurityContextTemplate.
type TemplateReference struct {
	// name of the SecurityContextTemplate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
