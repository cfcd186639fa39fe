package secrets

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Request is a Secret that is to be written.
type Request struct {
	Secret *corev1.Secret
	// Old is the Secret as it is; nil where it is created.
	Old *corev1.Secret
	// User is the user who writes the Secret.
	User authority.Subject
	// Agent is the name of the user that alone may make Secrets for pods.
	Agent string
	// Adapters finds the adapter of a type of target system.
	Adapters func(targetType string) target.Adapter
}

// Decide admits a Secret. An old fault that is left as it was is not a reason to refuse: a user who changes a label or
// removes a finalizer must be able to.
func Decide(r Request) Result {
	if !tokensecret.Labelled(r.Secret) {
		return Result{}
	}
	requester, denial := r.requester()
	if denial != nil {
		return Result{Denial: denial}
	}
	if r.replaced() {
		kept, operations := r.keep()
		r.Secret, requester = kept, append(requester, operations...)
	}
	request, err := tokensecret.Parse(r.Secret)
	if err != nil {
		if r.sameRequest() {
			return Result{Patch: requester}
		}
		return Result{Denial: decision.Invalid(fmt.Sprintf("%s: correct it, or take the label %s off the Secret", err, v1alpha1.LabelPurpose))}
	}
	if denial := r.authority(request); denial != nil {
		return Result{Denial: denial}
	}
	if denial := r.registries(); denial != nil {
		return Result{Denial: denial}
	}
	injected, denial := injection(r.Secret, request, r.Adapters)
	if denial != nil {
		if r.rendersTheSame() {
			return Result{Patch: requester}
		}
		return Result{Denial: denial}
	}
	var warnings []string
	if r.Secret.Immutable != nil && *r.Secret.Immutable {
		warnings = append(warnings, "the Secret is immutable: no token can be written into it; create it without immutable: true")
	}
	patch := difference(r.Secret, injected, r.before())
	return Result{Patch: slices.Concat(requester, patch, emptyLogins(r.Secret, len(patch) > 0)), Warnings: warnings}
}

// authority keeps contexts, and the names of the Secrets for service accounts, to the agent.
func (r Request) authority(request tokensecret.Request) *Denial {
	if r.User.Name == r.Agent || r.sameRequest() {
		return nil
	}
	if tokensecret.ServiceAccountContext(request.Context) {
		return decision.Forbidden(fmt.Sprintf("annotation %s names a service account: only the agent writes such Secrets, for service accounts with the annotation %s; annotate service account %s in namespace %s, or leave the context out",
			v1alpha1.AnnotationContextObject, v1alpha1.AnnotationAccountIdentities, request.Context.Name, request.Context.Namespace))
	}
	if request.Context != nil {
		return decision.Forbidden(fmt.Sprintf("annotation %s names a %s %s: only the agent writes such Secrets, for the objects of a ContextKind that delivers; leave the context out",
			v1alpha1.AnnotationContextObject, request.Context.APIVersion, request.Context.Kind))
	}
	if strings.HasPrefix(r.Secret.Name, tokensecret.NamePrefix) {
		return decision.Forbidden(fmt.Sprintf("Secret %q: the prefix %s is kept for Secrets that the agent makes for pods: give it another name", r.Secret.Name, tokensecret.NamePrefix))
	}
	return nil
}

// registries refuses a Secret for images whose list of registries is empty, before the API refuses it for the passwords that it lacks.
func (r Request) registries() *Denial {
	err := registriesFault(r.Secret)
	if err == nil || r.Old != nil && registriesFault(r.Old) != nil {
		return nil
	}
	return decision.Invalid(fmt.Sprintf("Secret %q: %s", r.Secret.Name, err))
}

// registriesFault is what is wrong with the list. A Secret with passwords of its own needs none.
func registriesFault(secret *corev1.Secret) error {
	_, listed := secret.Annotations[v1alpha1.AnnotationRegistries]
	_, filled := secret.Data[corev1.DockerConfigJsonKey]
	if secret.Type != corev1.SecretTypeDockerConfigJson || !tokensecret.Labelled(secret) || filled && !listed {
		return nil
	}
	return tokensecret.CheckRegistries(secret)
}

// sameRequest reports whether the Secret requested the same token before.
func (r Request) sameRequest() bool {
	if r.Old == nil || !tokensecret.Labelled(r.Old) {
		return false
	}
	for _, annotation := range []string{v1alpha1.AnnotationName, v1alpha1.AnnotationNamespace, v1alpha1.AnnotationBinding, v1alpha1.AnnotationContextObject} {
		now, present := r.Secret.Annotations[annotation]
		if before, had := r.Old.Annotations[annotation]; now != before || present != had {
			return false
		}
	}
	return true
}

// rendersTheSame reports whether all inputs of the keys are as they were.
func (r Request) rendersTheSame() bool {
	return r.sameRequest() && r.Secret.Labels[v1alpha1.LabelProvider] == r.Old.Labels[v1alpha1.LabelProvider] &&
		string(r.Secret.Data[v1alpha1.SecretConfig]) == string(r.Old.Data[v1alpha1.SecretConfig])
}

// before are the keys that were put into the Secret as it is, as far as they are known.
func (r Request) before() []target.Key {
	if r.Old == nil || !tokensecret.Labelled(r.Old) {
		return nil
	}
	request, err := tokensecret.Parse(r.Old)
	if err != nil {
		return nil
	}
	keys, denial := injection(r.Old, request, r.Adapters)
	if denial != nil {
		return nil
	}
	return keys.keys
}

// rendered are the keys that belong into a Secret; waiting reports whether they need a config that is still missing.
type rendered struct {
	keys    []target.Key
	waiting bool
}

// maxConfig bounds what is read as YAML, which takes a second for a megabyte: Secrets of all users come here. A providerConfig has
// at most 64 KiB.
const maxConfig = 128 << 10

// injection renders the keys for the place where the token will be: that of GEP-26, or for Secrets of service accounts, that
// of their pods.
func injection(secret *corev1.Secret, request tokensecret.Request, adapters func(string) target.Adapter) (rendered, *Denial) {
	targetType := secret.Labels[v1alpha1.LabelProvider]
	if size := len(secret.Data[v1alpha1.SecretConfig]); size > maxConfig {
		return rendered{}, decision.Invalid(fmt.Sprintf("data key %s of the Secret is %d bytes long, at most %d are allowed: the agent writes it from the identity, leave it out",
			v1alpha1.SecretConfig, size, maxConfig))
	}
	providerConfig, err := tokensecret.ProviderConfig(secret.Data[v1alpha1.SecretConfig])
	if err != nil {
		return rendered{}, decision.Invalid(fmt.Sprintf("data key %s of the Secret: %s: the agent writes it from the identity, leave it out", v1alpha1.SecretConfig, err))
	}
	config, problems := adapters(targetType).Parse(providerConfig, field.NewPath("data", v1alpha1.SecretConfig))
	if len(problems) > 0 {
		if len(providerConfig) == 0 {
			return rendered{waiting: true}, nil
		}
		return rendered{}, decision.Invalid(fmt.Sprintf("data key %s of the Secret is not for target system %q, which the label %s names: %s: the agent writes it from the identity, leave it out",
			v1alpha1.SecretConfig, targetType, v1alpha1.LabelProvider, problems.ToAggregate()))
	}
	place := target.SecretPlace(targetType)
	if tokensecret.ServiceAccountContext(request.Context) {
		place = target.PodPlace(target.Linux, target.DefaultMountPath, request.Identity.Name)
	}
	return rendered{keys: config.Injection(place).Keys}, nil
}
