// Package eventing writes the Events of a server. In go a client and the name of the component; out comes what Events are given to. It reads
// nothing. Servers without Events do without the clients that it needs.
package eventing

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// NewRecorder writes Events of a component until ctx is done, on objects of the core group and of the types that are added.
func NewRecorder(ctx context.Context, client kubernetes.Interface, component string, add ...func(*runtime.Scheme) error) record.EventRecorder {
	scheme := runtime.NewScheme()
	for _, types := range append(add, corev1.AddToScheme) {
		_ = types(scheme) // it only adds the types that the recorder must name
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
}
