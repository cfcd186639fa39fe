package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// awaitEnd waits until a namespace that was deleted is gone, so that it can be made again. The cluster cannot
// finish with it while an API is registered whose Service was in that namespace: the registrations go first.
func (c *Client) awaitEnd(ctx context.Context, namespace *unstructured.Unstructured) error {
	registration := &unstructured.Unstructured{}
	registration.SetAPIVersion("apiregistration.k8s.io/v1")
	registration.SetKind("APIService")
	for _, group := range groups() {
		if err := c.resource(registration).Delete(ctx, apiServiceName(group), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete APIService %s: %w", apiServiceName(group), err)
		}
	}
	return c.repeat(ctx, always, func() error {
		_, err := c.resource(namespace).Get(ctx, namespace.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		return fmt.Errorf("it was deleted, and the cluster has not finished with that")
	})
}
