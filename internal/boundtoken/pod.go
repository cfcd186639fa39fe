package boundtoken

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// maxEnding bounds how long a deleted pod gets tokens: its author chooses the grace period, which has no bound.
const maxEnding = 10 * time.Minute

// ended is the time from which a deleted pod gets no more tokens: when it has to be gone, and at most maxEnding after the deletion. It
// counts in seconds, as a grace period may exceed a Duration.
func ended(pod *corev1.Pod) time.Time {
	tooLong := ptr.Deref(pod.DeletionGracePeriodSeconds, 0) - int64(maxEnding/time.Second)
	return time.Unix(pod.DeletionTimestamp.Unix()-max(0, tooLong), 0)
}

// Gone is the reason of a caller whose pod was not found.
func (c Caller) Gone() string {
	return fmt.Sprintf("pod %s/%s of the caller's token does not exist any more", c.Namespace, c.Pod.Name)
}

// Fault returns why a pod is not the one of the caller's token, or gets no token any more; empty if it gets one.
func (c Caller) Fault(pod *corev1.Pod, now time.Time) string {
	if fault := c.fault(pod, now); fault != "" {
		return fmt.Sprintf("pod %s/%s of the caller's token %s", c.Namespace, c.Pod.Name, fault)
	}
	return ""
}

func (c Caller) fault(pod *corev1.Pod, now time.Time) string {
	switch phase := pod.Status.Phase; {
	case string(pod.UID) != c.Pod.UID:
		return fmt.Sprintf("has uid %q, and the token is of one with uid %q: it was deleted and created again", pod.UID, c.Pod.UID)
	case pod.DeletionTimestamp != nil && !now.Before(ended(pod)):
		return fmt.Sprintf("was deleted, and had until %s to end: its grace period, or %s", ended(pod).UTC().Format(time.RFC3339), maxEnding)
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		return fmt.Sprintf("has ended: its phase is %s", phase)
	case pod.Spec.ServiceAccountName != c.Name:
		return fmt.Sprintf("runs as service account %q, and the token is of %q", pod.Spec.ServiceAccountName, c.Name)
	case pod.Spec.NodeName != c.Node.Name:
		return fmt.Sprintf("is on node %q, and the token names node %q", pod.Spec.NodeName, c.Node.Name)
	}
	return ""
}
