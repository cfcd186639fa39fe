// Package apiserver is the aggregated API server: it serves WorkloadIdentity, workloadidentities/token and CredentialsBinding,
// KeyRing with its rotation and revocation, ContextKind and WorkloadCluster. In go a generic server configuration, an issuer and an operator of its keys, out comes a
// server that can be run. It never decides the claims of a token, and never reads a key.
package apiserver

import (
	"fmt"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/quotas"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// NewScheme returns the kinds that the server knows. While one version exists its types are their own internal version.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, version := range []string{v1alpha1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		group := schema.GroupVersion{Group: v1alpha1.GroupName, Version: version}
		scheme.AddKnownTypes(group, &v1alpha1.WorkloadIdentity{}, &v1alpha1.WorkloadIdentityList{}, &v1alpha1.CredentialsBinding{}, &v1alpha1.CredentialsBindingList{},
			&v1alpha1.Quota{}, &v1alpha1.QuotaList{})
		scheme.AddKnownTypeWithName(group.WithKind("TokenRequest"), &tokenrequest.Object{})
	}
	scheme.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.DeliveryReport{}, &v1alpha1.CredentialsDataRequest{})
	metav1.AddToGroupVersion(scheme, v1alpha1.SchemeGroupVersion)
	if err := identityv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", identityv1alpha1.SchemeGroupVersion, err)
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: identityv1alpha1.GroupName, Version: runtime.APIVersionInternal},
		&identityv1alpha1.KeyRing{}, &identityv1alpha1.KeyRingList{}, &identityv1alpha1.KeyRotation{}, &identityv1alpha1.KeyRevocation{},
		&identityv1alpha1.WorkloadCluster{}, &identityv1alpha1.WorkloadClusterList{}, &identityv1alpha1.ContextKind{}, &identityv1alpha1.ContextKindList{})
	identityuid.AddToScheme(scheme)
	quotas.AddToScheme(scheme)
	for _, version := range GroupVersions() {
		if err := scheme.SetVersionPriority(version); err != nil {
			return nil, fmt.Errorf("order versions of %s: %w", version.Group, err)
		}
	}
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	kind := v1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	if err := scheme.AddFieldLabelConversionFunc(kind, convertFieldLabel); err != nil {
		return nil, fmt.Errorf("register selectable fields of %s: %w", kind.Kind, err)
	}
	return scheme, nil
}

// GroupVersions are the API groups that the server serves, in the one version that each has.
func GroupVersions() schema.GroupVersions {
	return schema.GroupVersions{v1alpha1.SchemeGroupVersion, identityv1alpha1.SchemeGroupVersion}
}

// NewCodecs returns the codecs of a scheme; unknown and duplicate fields are reported where the request has fieldValidation.
func NewCodecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme)
}

func convertFieldLabel(label, value string) (string, string, error) {
	if label == workloadidentity.TargetTypeField {
		return label, value, nil
	}
	label, value, err := runtime.DefaultMetaV1FieldSelectorConversion(label, value)
	if err != nil {
		return "", "", fmt.Errorf("%w, and %q", err, workloadidentity.TargetTypeField)
	}
	return label, value, nil
}
