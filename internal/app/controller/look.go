package controller

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
)

// look finds out which keys relying parties are shown.
type look struct {
	// from names where it looks.
	from string
	keys func(ctx context.Context) ([]identity.KeyID, error)
}

func newLook(c checked, client kubernetes.Interface) (look, error) {
	if c.PublishCheckURL != "" {
		return publicLook(c)
	}
	place := placeOf(c, client)
	return look{from: place.String(), keys: func(ctx context.Context) ([]identity.KeyID, error) {
		return place.Keys(ctx, c.issuer)
	}}, nil
}

// placeOf is where the documents are written.
func placeOf(c checked, client kubernetes.Interface) publication.Place {
	if c.DocumentsDir != "" {
		return publication.Directory(c.DocumentsDir)
	}
	return publication.ConfigMap{Client: client.CoreV1(), Namespace: c.documents.Namespace, Name: c.documents.Name}
}
