package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// component is the source of the agent's Events.
const component = "credence-agent"

// Events are Events on objects of the workload cluster, and on identities in theirs.
type Events struct {
	Workload, Identity record.EventRecorder
}

// StartEvents writes Events with a client of each cluster until ctx is done.
func StartEvents(ctx context.Context, workload, identity kubernetes.Interface) Events {
	return Events{Workload: start(ctx, workload), Identity: start(ctx, identity)}
}

func start(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // they only add the types that the recorder must name
	_ = v1alpha1.AddToScheme(scheme)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
}

// Reference names an object in an Event without having all of it.
func Reference(apiVersion, kind, namespace, name string, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
}
