package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
)

// Credentials are what a registry is logged in to with.
type Credentials struct {
	Username string
	Password identity.Token
	// Expires is when the password is of no use any more.
	Expires time.Time
}

// Token is a token of a workload identity.
type Token struct {
	Value   identity.Token
	Expires time.Time
	// Target is the target system of the identity; nil if the API did not return it.
	Target *v1alpha1.TargetSystem
}

// variables are those that SDKs of a cloud are given for the identity: its role, or its application. It must be one of that cloud.
func (t Token) variables(cloud string) (map[string]string, error) {
	if t.Target == nil || t.Target.Type != cloud {
		return nil, fmt.Errorf("the identity is not of target system %s, and so does not name whom the cloud lets in: use an identity of that type", cloud)
	}
	var providerConfig []byte
	if t.Target.ProviderConfig != nil {
		providerConfig = t.Target.ProviderConfig.Raw
	}
	config, err := target.Check(targets.For(cloud), providerConfig)
	if err != nil {
		return nil, fmt.Errorf("a user who may update the identity corrects it: %w", err)
	}
	variables := map[string]string{}
	for _, v := range config.Injection(target.SecretPlace(cloud)).Env {
		variables[v.Name] = v.Value
	}
	return variables, nil
}

// exchange makes the credentials of one registry.
type exchange interface {
	credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error)
}

// exchanges are the kinds of exchanges by their names, each made from the host of its images and its settings.
var exchanges = map[string]func(host string, settings json.RawMessage) (exchange, error){
	"alibaba-container-registry": newAlibaba,
	"amazon-ecr":                 newAmazon,
	"azure-container-registry":   newAzure,
	"google-artifact-registry":   newArtifactRegistry,
	"token-exchange":             newTokenExchange,
	"token-server":               newTokenServer,
}

// Credentials returns what images of the registry are pulled with, for a token of an identity. A token with an audience that is not one of the
// registry is an error: the author of a pod chooses the image, and so which registry would be handed the token.
func (r Registry) Credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error) {
	err := r.checkAudiences(token)
	var got Credentials
	if err == nil {
		got, err = r.exchange.credentials(ctx, token, now)
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("get credentials for images of %s: %w", r.Images, err)
	}
	return got, nil
}
