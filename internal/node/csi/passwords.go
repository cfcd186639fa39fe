package csi

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/registry"
)

const (
	// longestExchange bounds how long the registries of a volume may take: other volumes of the node wait for a worker meanwhile.
	longestExchange = 20 * time.Second
	// shortestPassword is how long passwords count as being of use at least: a registry whose passwords end at once would have a token requested
	// at each look.
	shortestPassword = time.Minute
)

// passwords are those of the registries that a volume lists, for its new token.
func (d *Driver) passwords(ctx context.Context, r request, answer v1alpha1.TokenRequestStatus) (registry.DockerConfig, error) {
	if d.Registries == nil {
		return registry.DockerConfig{}, status.Errorf(codes.FailedPrecondition, "no passwords of registries for %s: this node has none configured: an admin of the node gives the driver --registries, or the pod's author leaves attribute %s of the volume out", r, v1alpha1.VolumeAttributeRegistries)
	}
	registries, err := d.Registries()
	if err != nil {
		return registry.DockerConfig{}, status.Errorf(codes.FailedPrecondition, "no passwords of registries for %s: --registries of the driver: %v: an admin of the node corrects it", r, err)
	}
	ctx, cancel := context.WithTimeout(ctx, longestExchange)
	defer cancel()
	token := registry.Token{Value: identity.NewToken(answer.Token), Expires: answer.ExpirationTimestamp.Time, Target: answer.TargetSystem}
	made, err := registries.DockerConfig(ctx, r.registries, token, d.now)
	if err != nil {
		return registry.DockerConfig{}, status.Errorf(codes.FailedPrecondition, "no passwords of registries for %s: %v", r, err)
	}
	return made, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
