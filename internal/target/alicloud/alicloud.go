// Package alicloud is Alibaba Cloud, whose STS exchanges a token for credentials of a RAM role. In goes a providerConfig with
// the role and the identity provider, out come these and the variables of the SDKs. It makes no requests.
package alicloud

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
const Type = "alicloud"

// maxLifetime: an identity provider refuses tokens that were issued longer ago than its issuance age limit, 12 hours unless
// it was set up otherwise, whatever their exp.
const maxLifetime = 12 * time.Hour

// fields are those of the providerConfig.
var fields = []string{"roleARN", "oidcProviderARN", "roleSessionName", "region"}

// System is Alibaba Cloud.
func System() target.System {
	return target.System{
		Name:    Type,
		Adapter: Adapter{},
		Short:   target.Short{Fields: fields, Audience: "sts.aliyuncs.com"},
		Trust:   trust.Side{Commands: trust.Writer(relationOf, writeCommands), Terraform: trust.Writer(relationOf, writeTerraform), Provider: trust.Writer(relationOf, writeProvider)},
		Errors:  refusals,
		Party:   target.Party{Name: "Alibaba RAM", Code: "alibaba", Algorithms: []string{"RS256"}, Lifetime: maxLifetime, Remark: ", unless the provider is set otherwise"},
	}
}

// Adapter is Alibaba Cloud.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.RS256}, Lifetime: maxLifetime, Untrusted: untrusted}
}

// untrusted is what is wrong with an audience that RAM can't be set up to accept.
func untrusted(audience string) string {
	if strings.Contains(audience, ",") || strings.Contains(audience, "${") || strings.HasPrefix(audience, "-") {
		return "holds a comma or ${, or begins with -: RAM lists client IDs with commas and takes ${ for a variable; choose another audience"
	}
	return ""
}

var (
	// role and provider have the account as their part. Their names begin with no hyphen, as an option of a command does.
	role     = regexp.MustCompile(`\A(acs:ram::\d{5,20}):role/\w[\w.-]{0,63}\z`)
	provider = regexp.MustCompile(`\A(acs:ram::\d{5,20}):oidc-provider/\w[\w.@+=,-]{0,127}\z`)
	session  = regexp.MustCompile(`\A[\w.@-]{2,64}\z`)
	region   = regexp.MustCompile(`\A[a-z]{2,8}(?:-[a-z0-9]{1,16}){1,4}\z`)
)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	read := target.Read(providerConfig, Type, path, fields...)
	c := config{
		path:    path,
		role:    read.Required("roleARN", "must be the ARN of a RAM role, such as acs:ram::1122334455667788:role/gardener-dev", role.MatchString),
		session: read.Optional("roleSessionName", "must be 2 to 64 letters, digits and characters of _.@-", session.MatchString),
		region:  read.Optional("region", "must be the ID of a region, such as eu-central-1", region.MatchString),
	}
	c.provider = read.Required("oidcProviderARN", "must be the ARN of an OIDC identity provider in the role's account, such as acs:ram::1122334455667788:oidc-provider/gardener", func(arn string) bool {
		parts, of := provider.FindStringSubmatch(arn), role.FindStringSubmatch(c.role)
		return parts != nil && (of == nil || parts[1] == of[1])
	})
	if errs := read.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

type config struct {
	path                            *field.Path
	role, provider, session, region string
}

// Injection implements target.Config.
func (c config) Injection(place target.Place) target.Injection {
	keys := []target.Key{
		{Name: "roleARN", Content: c.role},
		{Name: "oidcProviderARN", Content: c.provider},
		{Name: "workloadIdentityTokenFile", Content: place.Token()},
	}
	env := []target.Variable{
		{Name: "ALIBABA_CLOUD_ROLE_ARN", Value: c.role},
		{Name: "ALIBABA_CLOUD_OIDC_PROVIDER_ARN", Value: c.provider},
		{Name: "ALIBABA_CLOUD_OIDC_TOKEN_FILE", Value: place.Token()},
	}
	if c.session != "" {
		keys = append(keys, target.Key{Name: "roleSessionName", Content: c.session})
		env = append(env, target.Variable{Name: "ALIBABA_CLOUD_ROLE_SESSION_NAME", Value: c.session})
	}
	if c.region != "" {
		env = append(env,
			target.Variable{Name: "ALIBABA_CLOUD_REGION_ID", Value: c.region, Default: true},
			// By this one the SDKs choose the endpoint of STS.
			target.Variable{Name: "ALIBABA_CLOUD_STS_REGION", Value: c.region, Default: true})
	}
	return target.Injection{Keys: keys, Env: env}
}

// Account implements target.Config. Roles of the account may change.
func (c config) Account() []target.Fixed {
	return []target.Fixed{{Path: c.path.Child("roleARN"), Value: role.FindStringSubmatch(c.role)[1]}}
}

// Audiences implements target.Config. An identity provider lists the audiences that it takes.
func (config) Audiences() []string { return nil }
