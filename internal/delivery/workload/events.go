package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// Events are Events on objects of the workload cluster, and on identities in theirs.
type Events struct {
	Workload, Identity record.EventRecorder
}

// Reference names an object in an Event without having all of it.
func Reference(apiVersion, kind, namespace, name string, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
}
