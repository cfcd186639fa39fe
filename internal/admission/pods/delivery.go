package pods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/wording"
)

// checkDelivery refuses a pod to which tokens can't come in the way of its namespace. The other way is never taken in its place: it is
// an admin who decides where tokens are stored.
func checkDelivery(r Request, os target.OS) *Denial {
	instead := fmt.Sprintf("a cluster admin lets Secrets be mounted in the namespace with: kubectl label namespace %s --overwrite %s=%s", r.Namespace, v1alpha1.LabelNamespaceDelivery, v1alpha1.DeliverySecret)
	switch {
	case r.Delivery == "" || r.Delivery == v1alpha1.DeliverySecret:
		return nil
	case r.Delivery != v1alpha1.DeliveryCSI:
		return decision.Invalid(fmt.Sprintf("the label %s of namespace %s has the value %q, and there are %s and %s: a cluster admin corrects it with: kubectl label namespace %s --overwrite %s=%s",
			v1alpha1.LabelNamespaceDelivery, r.Namespace, wording.Abbreviate(r.Delivery), v1alpha1.DeliverySecret, v1alpha1.DeliveryCSI, r.Namespace, v1alpha1.LabelNamespaceDelivery, v1alpha1.DeliverySecret))
	case os == target.Windows:
		return decision.Invalid(fmt.Sprintf("the pod runs on Windows, and in namespace %s tokens are delivered by volumes of CSI driver %s, which is for Linux: %s", r.Namespace, v1alpha1.CSIDriver, instead))
	case slices.ContainsFunc(r.Pod.Spec.SchedulingGates, isGate):
		return decision.Invalid(fmt.Sprintf("spec.schedulingGates of the pod has %s, by which the agent knows pods that wait for Secrets, and in namespace %s tokens are delivered by volumes of CSI driver %s: remove it", v1alpha1.GateToken, r.Namespace, v1alpha1.CSIDriver))
	}
	return nil
}

// csiVolumeOf is the volume of a grant whose token is not stored: the driver has the files from the identity, rendered for the place that
// the volume names.
func csiVolumeOf(g grant, standard bool) corev1.Volume {
	attributes := map[string]string{v1alpha1.VolumeAttributeIdentity: g.identity}
	if !standard {
		attributes[v1alpha1.VolumeAttributeMountPath] = g.place.Dir
	}
	return corev1.Volume{Name: VolumeName(g.identity), VolumeSource: corev1.VolumeSource{
		CSI: &corev1.CSIVolumeSource{Driver: v1alpha1.CSIDriver, ReadOnly: new(true), VolumeAttributes: attributes},
	}}
}

// ofDriver reports whether a volume is one of our driver.
func ofDriver(v corev1.Volume) bool { return v.CSI != nil && v.CSI.Driver == v1alpha1.CSIDriver }

// DeliveryOf returns how a stored pod has the tokens that admission has given it: DeliverySecret, DeliveryCSI, or empty if it has none.
func DeliveryOf(pod *corev1.Pod) string {
	i := slices.IndexFunc(pod.Spec.Volumes, carriesToken)
	switch {
	case i < 0:
		return ""
	case ofDriver(pod.Spec.Volumes[i]):
		return v1alpha1.DeliveryCSI
	}
	return v1alpha1.DeliverySecret
}
