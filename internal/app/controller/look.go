package controller

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/internal/discovery/publication"
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
	var place publication.Place = publication.Directory(c.DocumentsDir)
	if c.DocumentsDir == "" {
		place = publication.ConfigMap{Client: client.CoreV1(), Namespace: c.documents.Namespace, Name: c.documents.Name}
	}
	return look{from: place.String(), keys: func(ctx context.Context) ([]identity.KeyID, error) {
		return place.Keys(ctx, c.issuer)
	}}, nil
}
