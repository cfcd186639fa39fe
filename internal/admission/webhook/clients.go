package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/internal/liveread"
)

// LiveServiceAccounts reads service accounts from the API each time, and never from a cache, which may not know of one that
// was annotated a moment before its pod. Reads of one account are made one after the other, and serve all waiting callers.
func LiveServiceAccounts(client kubernetes.Interface) ServiceAccounts {
	return &liveAccounts{client: client}
}

type liveAccounts struct {
	client kubernetes.Interface
	reads  liveread.Reads[types.NamespacedName, *corev1.ServiceAccount]
}

func (l *liveAccounts) Get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return l.reads.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, func(ctx context.Context) (*corev1.ServiceAccount, error) {
		return l.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// LiveRuntimeClasses reads RuntimeClasses likewise.
func LiveRuntimeClasses(client kubernetes.Interface) RuntimeClasses {
	return &liveClasses{client: client}
}

type liveClasses struct {
	client kubernetes.Interface
	reads  liveread.Reads[string, *nodev1.RuntimeClass]
}

func (l *liveClasses) Get(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
	return l.reads.Get(ctx, name, func(ctx context.Context) (*nodev1.RuntimeClass, error) {
		return l.client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	})
}
