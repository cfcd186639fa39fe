// Package azure is Microsoft Entra ID, which exchanges a token for one of an application or a managed identity. In goes a
// providerConfig with their GUIDs, out come these and the variables of the SDKs. It makes no requests.
package azure

import (
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Type is the type of target system.
const Type = "azure"

// Audience is what a federated credential expects unless another was set up.
const Audience = "api://AzureADTokenExchange"

const (
	authorityHost = "https://login.microsoftonline.com/"
	// maxLifetime is what Entra ID accepts (AADSTS70023 beyond it).
	maxLifetime = 25 * time.Hour
	// maxLength is that of the issuer, the subject and the audience of a federated credential.
	maxLength = 600
)

// fields are those of the providerConfig.
var fields = []string{"clientID", "tenantID", "subscriptionID"}

// System is Azure.
func System() target.System {
	return target.System{
		Name:    Type,
		Adapter: Adapter{},
		Short:   target.Short{Fields: fields},
		Trust:   trust.Side{Commands: writeCommands, Terraform: trust.Writer(relationOf, writeTerraform)},
		Errors:  refusals,
		Party:   target.Party{Name: "Microsoft Entra", Code: "entra", Algorithms: []string{"RS256"}, MaxSubject: maxLength, Audience: maxLength, Lifetime: maxLifetime, Remark: " (AADSTS70023)"},
	}
}

// Adapter is Azure.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter. Entra ID supports RS256 only.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.RS256}, Lifetime: maxLifetime, Subject: maxLength, Audience: maxLength}
}

var guid = regexp.MustCompile(`\A[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\z`)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	read := target.Read(providerConfig, Type, path, fields...)
	const what = "must be a GUID, such as 1f2e3d4c-5b6a-4798-8897-a6b5c4d3e2f1"
	c := config{
		path:         path,
		client:       read.Required("clientID", what, guid.MatchString),
		tenant:       read.Required("tenantID", what, guid.MatchString),
		subscription: read.Optional("subscriptionID", what, guid.MatchString),
	}
	if errs := read.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

type config struct {
	path                         *field.Path
	client, tenant, subscription string
}

// Injection implements target.Config. The keys are those that Gardener's extension for Azure and its consumers read.
func (c config) Injection(place target.Place) target.Injection {
	keys := []target.Key{{Name: "clientID", Content: c.client}, {Name: "tenantID", Content: c.tenant}}
	env := []target.Variable{
		{Name: "AZURE_CLIENT_ID", Value: c.client},
		{Name: "AZURE_TENANT_ID", Value: c.tenant},
		{Name: "AZURE_FEDERATED_TOKEN_FILE", Value: place.Token()},
		{Name: "AZURE_AUTHORITY_HOST", Value: authorityHost, Default: true},
	}
	if c.subscription != "" {
		keys = append(keys, target.Key{Name: "subscriptionID", Content: c.subscription})
		env = append(env, target.Variable{Name: "AZURE_SUBSCRIPTION_ID", Value: c.subscription, Default: true})
	}
	keys = append(keys, target.Key{Name: "workloadIdentityTokenFile", Content: place.Token()})
	return target.Injection{Keys: keys, Env: env}
}

// Account implements target.Config. GUIDs are the same whatever their case.
func (c config) Account() []target.Fixed {
	return []target.Fixed{
		{Path: c.path.Child("tenantID"), Value: strings.ToLower(c.tenant)},
		{Path: c.path.Child("subscriptionID"), Value: strings.ToLower(c.subscription)},
	}
}

// Audiences implements target.Config.
func (config) Audiences() []string { return []string{Audience} }
