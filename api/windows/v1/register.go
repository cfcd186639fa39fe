package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "windows.k8s.io"

// ResourceName is the resource of GMSACredentialSpecs in URLs and in RBAC rules, where the verb use belongs to it.
const ResourceName = "gmsacredentialspecs"

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// AddToScheme registers the kinds of this package in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &GMSACredentialSpec{}, &GMSACredentialSpecList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
