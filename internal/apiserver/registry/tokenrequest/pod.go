package tokenrequest

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"
)

// caller returns the account and the pod of the caller's token, as kube-apiserver has verified it. Other callers are refused (403), users of
// workload clusters among them: their pods are not known here.
func (r *SelfREST) caller(ctx context.Context, tr *v1alpha1.TokenRequest) (podCaller, error) {
	info, ok := request.UserFrom(ctx)
	if !ok {
		return podCaller{}, apierrors.NewUnauthorized("tokens are issued to authenticated callers only")
	}
	namespace, name, err := serviceaccount.SplitUsername(info.GetName())
	if err != nil {
		return podCaller{}, refusedSelf(tr.Name, "user %q is not a service account: only pods get tokens here, by a token of their own; others create workloadidentities/token", info.GetName())
	}
	if cluster, err := r.Clusters.Of(info.GetName()); err != nil {
		return podCaller{}, err
	} else if cluster != nil || clusters.Joined(info) {
		return podCaller{}, refusedSelf(tr.Name, "user %q is of a WorkloadCluster, whose pods are not known here: its agent creates workloadidentities/token", info.GetName())
	}
	caller := podCaller{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, uid: types.UID(info.GetUID()), pod: issuer.Pod{
		Name: extra(info, serviceaccount.PodNameKey),
		UID:  extra(info, serviceaccount.PodUIDKey),
		Node: issuer.Node{Name: extra(info, serviceaccount.NodeNameKey), UID: extra(info, serviceaccount.NodeUIDKey)},
	}}
	switch {
	case len(validation.NameIsDNSSubdomain(caller.pod.Name, false)) > 0 || caller.pod.UID == "":
		return podCaller{}, refusedSelf(tr.Name, "the token of service account %s is not bound to a pod: send the one that the kubelet gives a pod or a CSI driver, not one of a Secret, or one that was requested without a pod", caller.NamespacedName)
	case caller.pod.Node.Name == "":
		return podCaller{}, refusedSelf(tr.Name, "the token of pod %s/%s names no node: it was issued before the pod was on one, or by an API server before Kubernetes 1.30", namespace, caller.pod.Name)
	}
	return caller, nil
}

// extra returns the value of a key of the caller's token, or an empty text unless it is a single valid name.
func extra(info user.Info, key string) string {
	if values := info.GetExtra()[key]; len(values) == 1 && len(values[0]) <= maxFieldLength && identity.Printable(values[0]) {
		return values[0]
	}
	return ""
}

// maxEnding bounds how long a deleted pod gets tokens: its author chooses the grace period, which has no bound.
const maxEnding = 10 * time.Minute

// ended is the time from which a deleted pod gets no more tokens: when it has to be gone, and at most maxEnding after the deletion. It
// counts in seconds, as a grace period may exceed a Duration.
func ended(pod *corev1.Pod) time.Time {
	tooLong := ptr.Deref(pod.DeletionGracePeriodSeconds, 0) - int64(maxEnding/time.Second)
	return time.Unix(pod.DeletionTimestamp.Unix()-max(0, tooLong), 0)
}

// fault returns why a pod is not the one of the caller's token, or gets no token any more; empty if it gets one.
func (c podCaller) fault(pod *corev1.Pod, now time.Time) string {
	switch phase := pod.Status.Phase; {
	case string(pod.UID) != c.pod.UID:
		return fmt.Sprintf("has uid %q, and the token is of one with uid %q: it was deleted and created again", pod.UID, c.pod.UID)
	case pod.DeletionTimestamp != nil && !now.Before(ended(pod)):
		return fmt.Sprintf("was deleted, and had until %s to end: its grace period, or %s", ended(pod).UTC().Format(time.RFC3339), maxEnding)
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		return fmt.Sprintf("has ended: its phase is %s", phase)
	case pod.Spec.ServiceAccountName != c.Name:
		return fmt.Sprintf("runs as service account %q, and the token is of %q", pod.Spec.ServiceAccountName, c.Name)
	case pod.Spec.NodeName != c.pod.Node.Name:
		return fmt.Sprintf("is on node %q, and the token names node %q", pod.Spec.NodeName, c.pod.Node.Name)
	}
	return ""
}
