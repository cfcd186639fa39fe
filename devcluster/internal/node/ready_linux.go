package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const readyPoll = 100 * time.Millisecond

// awaitReady returns once the node has reported ready since it began.
func (n *node) awaitReady(ctx context.Context, began time.Time) error {
	config, err := clientcmd.BuildConfigFromFlags("", n.AdminKubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", n.AdminKubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := ensureObjects(ctx, client)
		if err == nil {
			err = isReady(ctx, client, began)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func isReady(ctx context.Context, client kubernetes.Interface, began time.Time) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at node %s: %w", Name, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		// The API has whole seconds. A report of an earlier run does not count.
		if condition.LastHeartbeatTime.Time.Before(began.Truncate(time.Second)) {
			break
		}
		if condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not ready: %s", Name, condition.Message)
		}
		return nil
	}
	return fmt.Errorf("node %s has not reported ready yet", Name)
}
