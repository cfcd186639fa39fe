package publication

import (
	"context"
	"fmt"
	"maps"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ConfigMap is an existing ConfigMap; it is not created, so that the right to create any is not needed.
type ConfigMap struct {
	Client          corev1client.ConfigMapsGetter
	Namespace, Name string
}

// String names the place.
func (c ConfigMap) String() string { return "ConfigMap " + c.Namespace + "/" + c.Name }

// Publish implements Place. Keys of others stay; a concurrent change is an error, and the next attempt sees it.
func (c ConfigMap) Publish(ctx context.Context, issue Issue) (bool, error) {
	current, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get: %w", err)
	}
	updated := current.DeepCopy()
	if updated.Data == nil {
		updated.Data = map[string]string{}
	}
	maps.Copy(updated.Data, issue.data())
	if maps.Equal(updated.Data, current.Data) {
		return false, nil
	}
	updated.BinaryData = nil // of others, and takes space from the documents
	if _, err := c.Client.ConfigMaps(c.Namespace).Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("update: %w", err)
	}
	return true, nil
}

// Keys implements Place.
func (c ConfigMap) Keys(ctx context.Context, issuer identity.Issuer) ([]identity.KeyID, error) {
	found, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", c, err)
	}
	return keysIn(issuer, []byte(found.Data[discovery.ConfigurationKey]), []byte(found.Data[discovery.JWKSKey]))
}

// Standing implements Place. A ConfigMap that does not exist is as empty as a folder without files.
func (c ConfigMap) Standing(ctx context.Context, issuer identity.Issuer) (Standing, error) {
	found, err := c.Client.ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return standing(issuer, nil), nil
	case err != nil:
		return Standing{}, fmt.Errorf("get %s: %w", c, err)
	}
	return standing(issuer, found.Data), nil
}
