// Package gcp is Google Cloud, whose STS exchanges a token by a workload identity pool. In goes a providerConfig with the
// provider of the pool, out comes the credential configuration of the SDKs, all of whose URLs are constants of this package.
// It makes no requests.
package gcp

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Type is the type of target system.
const Type = "gcp"

const (
	// maxLifetime: exp must be less than 48 hours after iat, and both are whole seconds.
	maxLifetime = 48*time.Hour - time.Second
	// maxSubject is the length of google.subject, in bytes.
	maxSubject        = 127
	maxAudiences      = 10
	maxAudienceLength = 256
)

// fields are those of the providerConfig.
var fields = []string{"workloadIdentityPoolProvider", "projectID", "serviceAccount"}

// System is Google Cloud.
func System() target.System {
	return target.System{
		Name:    Type,
		Adapter: Adapter{},
		Short:   target.Short{Fields: fields},
		Trust:   trust.Side{Bearers: true, Commands: trust.Writer(relationOf, writeCommands), Terraform: trust.Writer(relationOf, writeTerraform), Provider: trust.Writer(relationOf, writeProvider)},
		Errors:  refusals,
		Party:   target.Party{Name: "Google", Code: "google", Algorithms: []string{"RS256", "ES256"}, MaxSubject: maxSubject, Lifetime: maxLifetime},
	}
}

// Adapter is Google Cloud.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter.
func (Adapter) Limits() target.Limits {
	return target.Limits{
		Algorithms: []identity.Algorithm{identity.ES256, identity.RS256},
		Lifetime:   maxLifetime,
		Subject:    maxSubject,
		Audiences:  maxAudiences,
		Audience:   maxAudienceLength,
	}
}

const projectPattern = `[a-z][a-z0-9-]{4,28}[a-z0-9]`

var (
	project = regexp.MustCompile(`\A` + projectPattern + `\z`)
	// provider has the number of the project, the pool and the provider as its parts.
	provider = regexp.MustCompile(`\Aprojects/([1-9]\d{0,18})/locations/global/workloadIdentityPools/([a-z0-9-]{4,32})/providers/([a-z0-9-]{4,32})\z`)
	// account is a user-made service account, or the default one of Compute Engine or App Engine.
	account = regexp.MustCompile(`\A(?:` + projectPattern + `@` + projectPattern + `\.iam|[1-9]\d{0,18}-compute@developer|` + projectPattern + `@appspot)\.gserviceaccount\.com\z`)
)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	read := target.Read(providerConfig, Type, path, fields...)
	c := config{
		path:     path,
		project:  read.Required("projectID", "must be the ID of a project: 6 to 30 lower-case letters, digits and hyphens, a letter first and no hyphen last", project.MatchString),
		provider: read.Required("workloadIdentityPoolProvider", "must be projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, with the number of the project and nothing before it", provider.MatchString),
		account:  read.Optional("serviceAccount", "must be the address of a service account, such as backup@my-project.iam.gserviceaccount.com", account.MatchString),
	}
	if errs := read.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

type config struct {
	path                       *field.Path
	project, provider, account string
}

const credentialsKey = "credentialsConfig"

// Injection implements target.Config. The keys are those of Gardener's extension for GCP.
func (c config) Injection(place target.Place) target.Injection {
	return target.Injection{
		Keys:   []target.Key{{Name: credentialsKey, Content: c.credentials(place)}, {Name: "projectID", Content: c.project}},
		Mounts: []string{credentialsKey},
		Env: []target.Variable{
			{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: place.File(credentialsKey)},
			// gcloud, gsutil and bq do not read the variable of the SDKs.
			{Name: "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", Value: place.File(credentialsKey)},
			{Name: "GOOGLE_CLOUD_PROJECT", Value: c.project, Default: true},
		},
	}
}

// Account implements target.Config.
func (c config) Account() []target.Fixed {
	return []target.Fixed{{Path: c.path.Child("projectID"), Value: c.project}}
}

// Audiences implements target.Config: a provider takes its own full name, with or without a scheme.
func (c config) Audiences() []string {
	return []string{audience(c.provider), "https:" + audience(c.provider)}
}
