package aws

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/credence-id/credence/internal/target"
)

const (
	maxPathLength = 512
	maxNameLength = 64
)

// The parts of a role's ARN are what stands before :role (partition and account), a path and a name.
var (
	// ofAWS has a partition of aws or aws-…, which are there already or come one day.
	ofAWS = regexp.MustCompile(`\A(arn:aws(?:-[a-z0-9]{1,16}){0,3}:iam::\d{12}):role(/(?:[\w+=,.@-]+/)*)([\w+=,.@-]+)\z`)
	// ofStore is of MinIO, which has a partition of its own and neither account nor path, or of Ceph, whose accounts are tenants or
	// of RGW and digits, and may be missing.
	ofStore = regexp.MustCompile(`\A(arn:minio:iam:[a-z0-9-]{0,32}:|arn:aws:iam::\w{0,64}):role(/(?:[\w+=,.@-]+/)*)([\w+=,.@-]+)\z`)

	ofRegions      = regexp.MustCompile(`\A[a-z]{2,8}(?:-[a-z]{2,16}){1,3}-\d{1,2}\z`)
	ofStoreRegions = regexp.MustCompile(`\A[a-z0-9][a-z0-9-]{0,31}\z`)
	// likelyRegions have the words that the codes of regions are made of today. Another one may come.
	likelyRegions = regexp.MustCompile(`\A(?:(?:af|ap|ca|eu|il|me|mx|sa|us)|cn|us-gov|(?:us|eu)-iso[a-z]?|eusc-[a-z]{2})-(?:central|(?:north|south)?(?:east|west)|north|south)-\d{1,2}\z`)
	https         = regexp.MustCompile(`\Ahttps://[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[1-9]\d{0,4})?\z`)
)

// partitions are those of regions, by how their codes begin. All others are of aws.
var partitions = []struct{ region, name string }{
	{"us-gov-", "aws-us-gov"}, {"cn-", "aws-cn"}, {"eusc-", "aws-eusc"},
	{"us-iso-", "aws-iso"}, {"us-isob-", "aws-iso-b"}, {"eu-isoe-", "aws-iso-e"}, {"us-isof-", "aws-iso-f"},
	{"", "aws"},
}

// otherPartition returns the partition of a region, if it is another one than the role's; empty: the same, or not known.
func otherPartition(role, region string) string {
	own := strings.Split(role, ":")[1]
	known, of := false, ""
	for _, p := range partitions {
		if known = known || p.name == own; of == "" && strings.HasPrefix(region, p.region) {
			of = p.name
		}
	}
	if region == "" || of == own || of == "aws" && !known {
		return ""
	}
	return of
}

// rules are what the role and the region of a kind of endpoint must be.
type rules struct {
	role, region         *regexp.Regexp
	whatRole, whatRegion string
}

// rulesOf are those of AWS, or those of a store where there is an endpoint.
func rulesOf(endpoint string) rules {
	if endpoint == "" {
		return rules{ofAWS, ofRegions,
			"must be the ARN of an IAM role, such as arn:aws:iam::112233445566:role/gardener-dev: an account of 12 digits, a path of at most 512 and a name of at most 64 characters",
			"must be the code of a region, such as eu-central-1"}
	}
	return rules{ofStore, ofStoreRegions,
		"must be the ARN of a role of the store at the endpoint, such as arn:minio:iam:::role/name of MinIO or arn:aws:iam:::role/name of Ceph",
		"must be the name of the store's region, such as us-east-1: 1 to 32 lower-case letters, digits and hyphens"}
}

func (r rules) isRole(arn string) bool {
	parts := r.role.FindStringSubmatch(arn)
	return parts != nil && len(parts[2]) <= maxPathLength && len(parts[3]) <= maxNameLength
}

// Account implements target.Config. Roles of the account may change.
func (c config) Account() []target.Fixed {
	endpoint := cmp.Or(c.endpoint, "that of AWS")
	return []target.Fixed{
		{Path: c.path.Child("iamRoleARN"), Value: rulesOf(c.endpoint).role.FindStringSubmatch(c.role)[1]},
		{Path: c.path.Child("endpoint"), Value: endpoint, Host: c.endpoint != ""},
	}
}
