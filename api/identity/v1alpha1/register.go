package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "identity.credence.dev"

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &KeyRing{}, &KeyRingList{}, &KeyRotation{}, &KeyRevocation{}, &KeyInitialization{})
	scheme.AddKnownTypes(SchemeGroupVersion, &WorkloadCluster{}, &WorkloadClusterList{})
	scheme.AddKnownTypes(SchemeGroupVersion, &ContextKind{}, &ContextKindList{}, &ContextDelivery{}, &ContextDeliveryList{}, &ContextReview{}, &QuotaReview{})
	scheme.AddKnownTypes(SchemeGroupVersion, &NodeReview{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// Resource returns the group resource of a resource name of this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}
