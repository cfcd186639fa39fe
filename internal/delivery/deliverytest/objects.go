package deliverytest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// LabeledSecret is a Secret of a user's that requests tokens of an identity of its namespace.
func LabeledSecret(namespace, name, identity string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
			Labels:      map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor, "team": "fruit"},
			Annotations: map[string]string{v1alpha1.AnnotationName: identity, v1alpha1.AnnotationNamespace: namespace, "note": "ours"},
		},
		Data: map[string][]byte{"theirs": []byte("kept")},
	}
}

// EnabledNamespace is a namespace whose service accounts may give their pods identities.
func EnabledNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}}}
}

// Account is a service account that names identities.
func Account(namespace, name, identities string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: identities},
	}}
}

// MountingPod is a pod of the namespace ns that mounts Secrets in projected volumes.
func MountingPod(name string, secrets ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, secret := range secrets {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}}}})
	}
	return pod
}

// Secret returns a Secret that must exist.
func (w *World) Secret(key string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(key, secret)
	return secret
}

// ServiceAccount returns a service account that must exist.
func (w *World) ServiceAccount(key string) *corev1.ServiceAccount {
	w.t.Helper()
	account := &corev1.ServiceAccount{}
	w.get(key, account)
	return account
}

// Pod returns a pod that must exist.
func (w *World) Pod(key string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.get(key, pod)
	return pod
}

// Edit changes a Secret.
func (w *World) Edit(key string, change func(*corev1.Secret)) {
	w.t.Helper()
	secret := w.Secret(key)
	change(secret)
	w.Update(secret)
}

// Delete deletes a Secret.
func (w *World) Delete(key string) {
	w.t.Helper()
	if err := w.Client.Delete(w.t.Context(), w.Secret(key)); err != nil {
		w.t.Fatal(err)
	}
}

// EditAccount changes a service account.
func (w *World) EditAccount(key string, change func(*corev1.ServiceAccount)) {
	w.t.Helper()
	account := w.ServiceAccount(key)
	change(account)
	w.Update(account)
}

// Update writes an object.
func (w *World) Update(object client.Object) {
	w.t.Helper()
	if err := w.Client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *World) get(key string, object client.Object) {
	w.t.Helper()
	if err := w.Client.Get(w.t.Context(), Key(key), object); err != nil {
		w.t.Fatal(err)
	}
}
