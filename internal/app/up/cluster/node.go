package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeReady returns nil if the node has reported ready since a point in time, of which only whole seconds count.
func (c *Client) NodeReady(ctx context.Context, name string, since time.Time) error {
	object, err := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at node %s: %w", name, err)
	}
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
		return fmt.Errorf("look at node %s: %w", name, err)
	}
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != corev1.NodeReady:
		case condition.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)):
			return fmt.Errorf("node %s has not reported yet", name)
		case condition.Status != corev1.ConditionTrue:
			return fmt.Errorf("node %s is not ready: %s", name, condition.Message)
		default:
			return nil
		}
	}
	return errors.New("node " + name + " has not reported yet")
}
