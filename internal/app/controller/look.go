package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

// look finds out which keys relying parties are shown.
type look struct {
	// from says where it looks.
	from string
	keys func(ctx context.Context) ([]identity.KeyID, error)
}

func newLook(c checked, client kubernetes.Interface) (look, error) {
	if c.PublishCheckURL != "" {
		return publicLook(c)
	}
	if c.DocumentsDir != "" {
		return look{from: "folder " + c.DocumentsDir, keys: func(context.Context) ([]identity.KeyID, error) {
			configuration, err := os.ReadFile(filepath.Join(c.DocumentsDir, discovery.ConfigurationKey))
			if err != nil {
				return nil, err
			}
			jwks, err := os.ReadFile(filepath.Join(c.DocumentsDir, discovery.JWKSKey))
			if err != nil {
				return nil, err
			}
			return keysIn(c.issuer, configuration, jwks)
		}}, nil
	}
	name := c.documents
	return look{from: "ConfigMap " + name.String(), keys: func(ctx context.Context) ([]identity.KeyID, error) {
		found, err := client.CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return keysIn(c.issuer, []byte(found.Data[discovery.ConfigurationKey]), []byte(found.Data[discovery.JWKSKey]))
	}}, nil
}

// keysIn counts nothing as published that a discovery server would refuse to serve.
func keysIn(issuer identity.Issuer, configuration, jwks []byte) ([]identity.KeyID, error) {
	documents, err := discovery.Parse(issuer, configuration, jwks)
	if err != nil {
		return nil, fmt.Errorf("the published documents are none that can be served: %w", err)
	}
	return documents.KeyIDs(), nil
}
