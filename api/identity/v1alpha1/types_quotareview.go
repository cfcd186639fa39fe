package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QuotaReview reserves what a write of a context object needs of its Quotas. The admission webhook creates it for each such write. It is not
// stored.
type QuotaReview struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the write.
	Spec QuotaReviewSpec `json:"spec"`
	// status is whether it may be made; the server fills it in.
	// +optional
	Status QuotaReviewStatus `json:"status,omitempty"`
}

// QuotaReviewSpec is a write of a context object.
type QuotaReviewSpec struct {
	// request is the uid of the admission request. Required.
	Request types.UID `json:"request"`
	// group and resource are those of the object. resource is required.
	// +optional
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// object is the object as it would be stored. Required.
	Object runtime.RawExtension `json:"object"`
	// oldObject is the object that is stored; absent for a new one.
	// +optional
	OldObject *runtime.RawExtension `json:"oldObject,omitempty"`
	// dryRun is whether nothing is written, and so nothing reserved.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// QuotaReviewStatus is whether a write may be made.
type QuotaReviewStatus struct {
	// allowed is whether it may.
	// +optional
	Allowed bool `json:"allowed,omitempty"`
	// refused is why it may not: which limit it would exceed, with the numbers.
	// +optional
	Refused string `json:"refused,omitempty"`
}
