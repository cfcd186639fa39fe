package pullsecrets

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/tokensecret"
)

// state is what a Secret holds.
type state struct {
	// token is zero if the Secret has none that can be read.
	token registry.Token
	// inputs are what passwords are made from, and attempt these with the user on whose behalf they are made: a failure is remembered for them.
	inputs, attempt string
	// renewAt is when the passwords are due; zero if that cannot be read.
	renewAt time.Time
}

func read(secret *corev1.Secret) state {
	annotations := secret.Annotations
	s := state{inputs: renewal.PasswordInputs(secret)}
	requester := []string{s.inputs}
	for _, annotation := range tokensecret.RequesterAnnotations() {
		requester = append(requester, annotations[annotation])
	}
	s.attempt = renewal.Seal(renewal.Text(requester...), nil)
	s.renewAt, _ = time.Parse(time.RFC3339, annotations[v1alpha1.AnnotationRegistriesRenewTimestamp])
	stored := secrets.Stored(secret)
	if stored != nil {
		s.token = registry.Token{Value: identity.NewToken(string(secret.Data[v1alpha1.SecretToken])), Expires: stored.Expiry, Target: target(secret)}
	}
	return s
}

// target is the target system of the identity; nil: the Secret does not have it, or not so that it can be read.
func target(secret *corev1.Secret) *v1alpha1.TargetSystem {
	providerConfig, err := tokensecret.ProviderConfig(secret.Data[v1alpha1.SecretConfig])
	if err != nil {
		return nil
	}
	system := &v1alpha1.TargetSystem{Type: secret.Labels[v1alpha1.LabelProvider]}
	if providerConfig != nil {
		system.ProviderConfig = &runtime.RawExtension{Raw: providerConfig}
	}
	return system
}

// sealed is what stands beside passwords that were made from the inputs.
func (s state) sealed(content []byte) string { return renewal.Seal(s.inputs, content) }
