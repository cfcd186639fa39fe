// Package aws is Amazon Web Services, whose STS exchanges a token for credentials of an IAM role. In goes a providerConfig
// with the role, out come a profile for the SDKs and their variables. It never speaks to AWS.
package aws

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
)

// Type is the type of target system.
const Type = "aws"

// Adapter is AWS.
type Adapter struct{}

// Type implements target.Adapter.
func (Adapter) Type() string { return Type }

// Limits implements target.Adapter. STS has no limit of its own on lifetimes.
func (Adapter) Limits() target.Limits {
	return target.Limits{Algorithms: []identity.Algorithm{identity.ES256, identity.RS256}}
}

const (
	maxPathLength = 512
	maxNameLength = 64
)

var (
	// role has a partition of aws or aws-…, which are there already or come one day; an account; a path; a name.
	role    = regexp.MustCompile(`\Aarn:aws(?:-[a-z0-9]{1,16}){0,3}:iam::\d{12}:role(/(?:[\w+=,.@-]+/)*)([\w+=,.@-]+)\z`)
	session = regexp.MustCompile(`\A[\w+=,.@-]{2,64}\z`)
	region  = regexp.MustCompile(`\A[a-z]{2,8}(?:-[a-z]{2,16}){1,3}-\d{1,2}\z`)
)

// Parse implements target.Adapter.
func (Adapter) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	fields := target.Read(providerConfig, Type, path, "iamRoleARN", "roleSessionName", "region")
	c := config{
		role:    fields.Required("iamRoleARN", "must be the ARN of an IAM role, such as arn:aws:iam::112233445566:role/gardener-dev: an account of 12 digits, a path of at most 512 and a name of at most 64 characters", isRole),
		session: fields.Optional("roleSessionName", "must be 2 to 64 letters, digits and characters of _+=,.@-", session.MatchString),
		region:  fields.Optional("region", "must be the code of a region, such as eu-central-1", region.MatchString),
	}
	if errs := fields.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

func isRole(arn string) bool {
	parts := role.FindStringSubmatch(arn)
	return parts != nil && len(parts[1]) <= maxPathLength && len(parts[2]) <= maxNameLength
}

type config struct {
	role, session, region string
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
	}
	return profile.String()
}

// Account implements target.Config. Roles may change.
func (config) Account() []target.Fixed { return nil }

// Audiences implements target.Config. An IAM identity provider lists the audiences that it takes.
func (config) Audiences() []string { return nil }
