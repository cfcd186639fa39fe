package cluster

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var keyRings = schema.GroupVersionResource{Group: "identity.credence.dev", Version: version, Resource: "keyrings"}

// WaitKeys waits until the KeyRing shows the keys, and returns which of them sign, in a line for people.
func (c *Client) WaitKeys(ctx context.Context) (signing string, err error) {
	err = c.repeat(ctx, always, func() error {
		ring, err := c.keyRing(ctx)
		if err != nil {
			return err
		}
		if signing, _, _ = unstructured.NestedString(ring.Object, "status", "signing"); signing == "" {
			return errors.New("the key controller has not written the keys yet")
		}
		return nil
	})
	return signing, err
}

func (c *Client) keyRing(ctx context.Context) (*unstructured.Unstructured, error) {
	const name = "workload-identities"
	ring, err := c.objects.Resource(keyRings).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get KeyRing %s: %w", name, err)
	}
	return ring, nil
}

// signless reports whether no key may sign by the KeyRing.
func (c *Client) signless(ctx context.Context) bool {
	ring, err := c.keyRing(ctx)
	if err != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(ring.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == "Ready" {
			return condition["status"] == "False" && condition["reason"] == "NoSigningKey"
		}
	}
	return false
}
