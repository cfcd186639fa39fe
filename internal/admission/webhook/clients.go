package webhook

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// LiveServiceAccounts reads service accounts from the API each time, and never from a cache, which may not know of one that
// was annotated a moment before its pod. Reads of one account are made one after the other, and serve all waiting callers.
func LiveServiceAccounts(client kubernetes.Interface) ServiceAccounts {
	return liveAccounts{newLive(func(ctx context.Context, key types.NamespacedName) (*corev1.ServiceAccount, error) {
		return client.CoreV1().ServiceAccounts(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	})}
}

type liveAccounts struct {
	reads *live[types.NamespacedName, *corev1.ServiceAccount]
}

func (l liveAccounts) Get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return l.reads.get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// LiveRuntimeClasses reads RuntimeClasses likewise.
func LiveRuntimeClasses(client kubernetes.Interface) RuntimeClasses {
	return liveClasses{newLive(func(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
		return client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	})}
}

type liveClasses struct {
	reads *live[string, *nodev1.RuntimeClass]
}

func (l liveClasses) Get(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
	return l.reads.get(ctx, name)
}

// ClusterAuthorizer has the cluster review what a user may do.
func ClusterAuthorizer(client kubernetes.Interface) Authorizer { return clusterAuthorizer{client} }

type clusterAuthorizer struct{ client kubernetes.Interface }

func (c clusterAuthorizer) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return review.Status, nil
}
