package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/target"
)

// The errors of all sources are those of the API: a NotFound means that the object does not exist, any other
// that this is unknown.

// ServiceAccounts reads service accounts: as they are, not as they were.
type ServiceAccounts interface {
	Get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
}

// Identities reads identities, which must not be changed.
type Identities interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
}

// Profiles reads ServiceAccountProfiles and SecurityContextTemplates, as they are.
type Profiles interface {
	Profile(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error)
	Template(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error)
}

// RuntimeClasses reads RuntimeClasses.
type RuntimeClasses interface {
	Get(ctx context.Context, name string) (*nodev1.RuntimeClass, error)
}

// Namespaces reads namespaces, as they are.
type Namespaces interface {
	Get(ctx context.Context, name string) (*corev1.Namespace, error)
}

// CredentialSpecs returns GMSACredentialSpecs.
type CredentialSpecs interface {
	// Known is one as it was last seen; false if it was not, which does not mean that it does not exist.
	Known(name string) (gmsa.Spec, bool)
	// Read is the current one. A missing one is not an error.
	Read(ctx context.Context, name string) (gmsa.Spec, error)
}

// Workloads reads a ReplicaSet or ReplicationController as JSON, by its resource.
type Workloads interface {
	Get(ctx context.Context, resource, namespace, name string) ([]byte, error)
}

// Needs are what a Webhook works with; all are required but Recorder, GMSA and Delivery, and CredentialSpecs, without which no review about accounts
// of Active Directory is answered.
type Needs struct {
	ServiceAccounts ServiceAccounts
	Profiles        Profiles
	Identities      Identities
	RuntimeClasses  RuntimeClasses
	Namespaces      Namespaces
	// Delivery is how tokens come to pods of namespaces without the label for it; empty: by Secrets.
	Delivery        string
	Pods            Pods
	Authorizer      authority.Reviewer
	CredentialSpecs CredentialSpecs
	// Workloads is needed where GMSA.RequireUser is set.
	Workloads Workloads
	GMSA      GMSA
	Quotas    Quotas
	// Adapters finds the adapter of a type of target system.
	Adapters func(targetType string) target.Adapter
	// Agent is the user that writes the Secrets of pods.
	Agent    string
	Recorder *Recorder
	Log      *slog.Logger
	Now      func() time.Time
}

// Paths of the handlers. DefaultPodsPath is for namespaces without the label for how tokens come to their pods. ProfilePodsPath and ProfileTemplatesPath
// are for namespaces whose accounts have profiles and give no identities. Below FinishedPath are the reviews of the same pods after all mutating
// webhooks. MutatePath and ValidatePath are where clusters that had another gMSA webhook know theirs.
const (
	DefaultPodsPath      = "/default-pods"
	PodsPath             = "/pods"
	FinishedPath         = "/finished"
	SecretsPath          = "/secrets"
	TemplatesPath        = "/templates"
	ServiceAccountsPath  = "/serviceaccounts"
	ProfilePodsPath      = "/profile-pods"
	ProfileTemplatesPath = "/profile-templates"
	QuotasPath           = "/quotas"
	MutatePath           = "/mutate"
	ValidatePath         = "/validate"
	CredentialSpecsPath  = "/credentialspecs"
	GMSATemplatesPath    = "/gmsa-templates"
)

// New returns the handler of all reviews.
func New(needs Needs) http.Handler {
	rights := authority.NewLive(needs.Authorizer, needs.Now)
	sources := newSources(needs, rights)
	rules := &podRules{sources: sources, adapters: needs.Adapters, recent: newRecentFacts(needs.Now)}
	profiles := &podRules{sources: sources, adapters: needs.Adapters, recent: newRecentFacts(needs.Now), noIdentities: true}
	sources.Delivery = func(context.Context, string) (string, error) { return needs.Delivery, nil }
	byDefault := &podRules{sources: sources, adapters: needs.Adapters, recent: newRecentFacts(needs.Now)}
	mux := http.NewServeMux()
	for path, of := range map[string]struct {
		*podRules
		handler handlerName
	}{
		DefaultPodsPath: {byDefault, podsHandler},
		PodsPath:        {rules, podsHandler},
		ProfilePodsPath: {profiles, profilePodsHandler},
	} {
		mux.Handle(path, handler(needs, of.handler, podReviews(of.of)))
		mux.Handle(FinishedPath+path, handler(needs, finishedPodsHandler, podReviews(of.finished)))
	}
	mux.Handle(SecretsPath, handler(needs, secretsHandler, secretReviews(needs)))
	mux.Handle(TemplatesPath, handler(needs, templatesHandler, templateReviews(rules)))
	mux.Handle(ServiceAccountsPath, handler(needs, accountsHandler, accountReviews(needs)))
	mux.Handle(ProfileTemplatesPath, handler(needs, profileTemplatesHandler, templateReviews(profiles)))
	mux.Handle(QuotasPath, handler(needs, quotasHandler, quotaReviews(needs)))
	if needs.CredentialSpecs == nil {
		return mux
	}
	accounts := newManagedAccounts(needs, rights)
	mux.Handle(MutatePath, handler(needs, mutateHandler, enforced(needs.GMSA.Enforcement, accounts.expand)))
	mux.Handle(ValidatePath, handler(needs, validateHandler, enforced(needs.GMSA.Enforcement, accounts.authorize)))
	mux.Handle(CredentialSpecsPath, handler(needs, credentialSpecsHandler, enforced(needs.GMSA.Enforcement, credentialSpecReview)))
	mux.Handle(GMSATemplatesPath, handler(needs, gmsaTemplatesHandler, enforced(needs.GMSA.Enforcement, accounts.template)))
	return mux
}
