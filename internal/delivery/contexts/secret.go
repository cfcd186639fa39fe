package contexts

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// newSecret is the Secret of a delivery, to be filled with a token.
func newSecret(d *identityv1alpha1.ContextDelivery) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Spec.Secret.Namespace, Name: d.Spec.Secret.Name,
			Labels:      map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor, v1alpha1.LabelExcludedFromBackup: "true"},
			Annotations: map[string]string{},
		},
		Type: corev1.SecretTypeOpaque,
	}
	annotate(secret, d)
	if d.Spec.Renewal != "" {
		secret.Annotations[v1alpha1.AnnotationContextRenewal] = d.Spec.Renewal
	}
	configure(secret, d)
	return secret
}

// changed returns what a Secret of ours becomes by a delivery. The config of a Secret that has a token stays until it gets its next one: both
// belong together, and are replaced by one write. One that has static credentials gets none before these are gone.
func changed(have *corev1.Secret, d *identityv1alpha1.ContextDelivery) *corev1.Secret {
	secret := have.DeepCopy()
	annotate(secret, d)
	if d.Spec.Renewal != "" && secret.Annotations[v1alpha1.AnnotationContextRenewal] != d.Spec.Renewal {
		secret.Annotations[v1alpha1.AnnotationContextRenewal] = d.Spec.Renewal
		secret.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
	}
	if _, copied := tokensecret.CopiedInto(secret); len(secret.Data[v1alpha1.SecretToken]) == 0 && !copied {
		configure(secret, d)
	}
	return secret
}

// annotate has a Secret name what a delivery names.
func annotate(secret *corev1.Secret, d *identityv1alpha1.ContextDelivery) {
	secret.Annotations[v1alpha1.AnnotationContextDelivery] = d.Name
	secret.Annotations[v1alpha1.AnnotationContextObject] = contextOf(d)
	named, other := v1alpha1.AnnotationName, v1alpha1.AnnotationBinding
	if ofData(d) {
		named, other = other, named
	}
	secret.Annotations[v1alpha1.AnnotationNamespace], secret.Annotations[named] = sourceOf(d).Namespace, sourceOf(d).Name
	delete(secret.Annotations, other)
}

// ofData reports whether a delivery is of the data of a binding, and not of tokens.
func ofData(d *identityv1alpha1.ContextDelivery) bool {
	return d.Spec.Problem == "" && d.Spec.WorkloadIdentity == nil && d.Spec.CredentialsBinding != nil
}

// sourceOf is the identity of a delivery, or the binding of one of data.
func sourceOf(d *identityv1alpha1.ContextDelivery) types.NamespacedName {
	from := d.Spec.WorkloadIdentity
	if from == nil {
		from = d.Spec.CredentialsBinding
	}
	return types.NamespacedName{Namespace: from.Namespace, Name: from.Name}
}

func configure(secret *corev1.Secret, d *identityv1alpha1.ContextDelivery) {
	secret.Labels[v1alpha1.LabelProvider] = d.Spec.Provider
	delete(secret.Data, v1alpha1.SecretConfig)
	if d.Spec.Config == "" {
		return
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[v1alpha1.SecretConfig] = []byte(d.Spec.Config)
}

// contextOf is the annotation that names the context object.
func contextOf(d *identityv1alpha1.ContextDelivery) string {
	o := d.Spec.ContextObject
	return tokensecret.FormatContext(v1alpha1.ContextObject{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: o.Namespace, UID: o.UID})
}

// mark is the name of the delivery that a Secret was made for; empty: it is not ours.
func mark(secret metav1.Object) string {
	if !tokensecret.Labelled(secret) {
		return ""
	}
	return secret.GetAnnotations()[v1alpha1.AnnotationContextDelivery]
}

// Marked reports whether a Secret was made for a delivery.
func Marked(secret metav1.Object) bool { return mark(secret) != "" }

// ObjectOf is the uid of the context object of a Secret; empty without one.
func ObjectOf(secret metav1.Object) types.UID {
	if object, err := tokensecret.ParseContext(secret.GetAnnotations()[v1alpha1.AnnotationContextObject]); err == nil {
		return object.UID
	}
	return ""
}
