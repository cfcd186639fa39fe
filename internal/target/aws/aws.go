// Package aws is Amazon Web Services, whose STS exchanges a token for credentials of an IAM role, or a store that does the same
// at an endpoint of its own: MinIO, Ceph. In goes a providerConfig with the role, out come a profile for the SDKs and their
// variables. It makes no requests.
package aws

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Type is the type of target system.
const Type = "aws"

// fields are those of the providerConfig.
var fields = []string{"iamRoleARN", "roleSessionName", "region", "endpoint"}

// System is AWS.
func System() target.System {
	return target.System{
		Name:    Type,
		Adapter: Adapter{},
		Short:   target.Short{Fields: fields, Audience: "sts.amazonaws.com"},
		Trust:   trust.Side{Commands: trust.Writer(relationOf, writeCommands), Terraform: trust.Writer(relationOf, writeTerraform), Provider: trust.Writer(relationOf, writeProvider)},
		Errors:  refusals,
		Party:   target.Party{Name: "AWS", Code: "aws", Algorithms: []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}, MinSubject: 6, MaxSubject: 255},
	}
}

// Adapter is AWS and stores that are compatible with its STS and S3.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter. STS has no limit of its own on lifetimes.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.ES256, identity.RS256}}
}

var session = regexp.MustCompile(`\A[\w+=,.@-]{2,64}\z`)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	read := target.Read(providerConfig, Type, path, fields...)
	c := config{
		path:     path,
		endpoint: read.Optional("endpoint", "must be the URL of an S3-compatible store, such as https://minio.example.com:9000: https, and nothing after host and port", https.MatchString),
		session:  read.Optional("roleSessionName", "must be 2 to 64 letters, digits and characters of _+=,.@-", session.MatchString),
	}
	rules := rulesOf(c.endpoint)
	c.role = read.Required("iamRoleARN", rules.whatRole, rules.isRole)
	c.region = read.Optional("region", rules.whatRegion, rules.region.MatchString)
	if errs := read.Errors(); len(errs) > 0 {
		return nil, errs
	}
	if other := otherPartition(c.role, c.region); c.endpoint == "" && other != "" {
		return nil, field.ErrorList{field.Invalid(path.Child("region"), c.region, "must be a region of the partition of iamRoleARN, and is one of "+other)}
	}
	return c, nil
}

type config struct {
	path                            *field.Path
	role, session, region, endpoint string
}

// Injection implements target.Config. The profile is that of GEP-26's sample Secret.
func (c config) Injection(place target.Place) target.Injection {
	env := []target.Variable{
		{Name: "AWS_ROLE_ARN", Value: c.role},
		{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: place.Token()},
	}
	if c.session != "" {
		env = append(env, target.Variable{Name: "AWS_ROLE_SESSION_NAME", Value: c.session})
	}
	if c.region != "" {
		// The SDKs read the first, but botocore (boto3, version 1 of the AWS CLI) reads the second alone.
		env = append(env,
			target.Variable{Name: "AWS_REGION", Value: c.region, Default: true, Alias: "AWS_DEFAULT_REGION"},
			target.Variable{Name: "AWS_DEFAULT_REGION", Value: c.region, Default: true, Alias: "AWS_REGION"})
		if c.endpoint == "" {
			// Older SDKs otherwise call the global endpoint, which a network without internet access does not reach.
			env = append(env, target.Variable{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "regional", Default: true})
		}
	}
	if c.endpoint != "" {
		// The SDK for Go takes AWS_ENDPOINT_URL for S3, and not where it exchanges the token.
		env = append(env,
			target.Variable{Name: "AWS_ENDPOINT_URL_STS", Value: c.endpoint},
			target.Variable{Name: "AWS_ENDPOINT_URL_S3", Value: c.endpoint})
	}
	return target.Injection{Keys: []target.Key{{Name: "credentialsFile", Content: c.profile(place)}}, Env: env}
}

// profile is a file of the SDKs' own format: lines, each with a value that has neither spaces nor line ends.
func (c config) profile(place target.Place) string {
	var profile strings.Builder
	fmt.Fprintf(&profile, "[default]\nrole_arn=%s\nweb_identity_token_file=%s\n", c.role, place.Token())
	if c.session != "" {
		fmt.Fprintf(&profile, "role_session_name=%s\n", c.session)
	}
	if c.region != "" {
		fmt.Fprintf(&profile, "region=%s\n", c.region)
		if c.endpoint == "" {
			profile.WriteString("sts_regional_endpoints=regional\n")
		}
	}
	if c.endpoint != "" {
		fmt.Fprintf(&profile, "endpoint_url=%s\n", c.endpoint)
	}
	return profile.String()
}

// Warnings implements target.Warner.
func (c config) Warnings() []string {
	if c.region == "" || c.endpoint != "" || likelyRegions.MatchString(c.region) {
		return nil
	}
	return []string{fmt.Sprintf("%s: no region with a code like %q is known: workloads could not reach AWS; see aws account list-regions", c.path.Child("region"), c.region)}
}

// Audiences implements target.Config. An IAM identity provider lists the audiences that it takes.
func (config) Audiences() []string { return nil }
