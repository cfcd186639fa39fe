package gcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// relation are the parts of a project that let an identity in.
type relation struct {
	project, number, pool, provider string
	account                         string // the service account to impersonate; empty: none
	audiences                       []string
	principal                       string
}

func relationOf(i trust.Identity) (relation, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return relation{}, err
	}
	side := relation{project: c.project, account: c.account, audiences: i.Audiences}
	parts := provider.FindStringSubmatch(c.provider)
	side.number, side.pool, side.provider = parts[1], parts[2], parts[3]
	if len(i.Subject) > maxSubject {
		return side, fmt.Errorf("its subject is %d bytes long, and Google takes at most %d: choose a shorter name or namespace", len(i.Subject), maxSubject)
	}
	side.principal = fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/%s", side.number, side.pool, i.Subject)
	return side, nil
}

func writeCommands(i trust.Identity, side relation) string {
	inPool := [][2]string{{"--project=", side.number}, {"--location=", "global"}}
	ofProvider := [][2]string{{"--workload-identity-pool=", side.pool}, {"--issuer-uri=", i.Issuer},
		{"--allowed-audiences=", gcloudList(side.audiences)}, {"--attribute-mapping=", "google.subject=assertion.sub"}}
	remark, next := "", "\n\n"
	if i.Bearer != (trust.Bearer{}) {
		ofProvider = append(ofProvider, [2]string{"--attribute-condition=", i.Condition("assertion")})
		remark = "# Where the provider exists, create-oidc fails, and nothing is bound: add the condition by update-oidc, then bind.\n" + joinConditions
		next = " &&\n"
	}
	text := "# Once for all identities of the issuer.\n" +
		trust.Command("gcloud iam workload-identity-pools create "+trust.Shell(side.pool), inPool...) + "\n" + remark +
		strings.TrimSuffix(trust.Command("gcloud iam workload-identity-pools providers create-oidc "+trust.Shell(side.provider), append(inPool, ofProvider...)...), "\n") + next
	if side.account != "" {
		return text + trust.Command("gcloud iam service-accounts add-iam-policy-binding "+trust.Shell(side.account),
			[2]string{"--project=", side.project}, [2]string{"--role=", "roles/iam.workloadIdentityUser"}, [2]string{"--member=", side.principal}, [2]string{"--condition=", "None"})
	}
	return text + "# ROLE is what the identity may do, such as roles/storage.objectViewer.\n" +
		trust.Command("gcloud projects add-iam-policy-binding "+trust.Shell(side.project)+" --role=\"$ROLE\"",
			[2]string{"--member=", side.principal}, [2]string{"--condition=", "None"})
}

// joinConditions is what a person must know of a condition: a provider has one, and the subject is let in by every provider of the pool.
const joinConditions = "# A provider has one condition for all identities: join several by &&, each in parentheses. Other providers of the pool\n" +
	"# that take tokens of the issuer need it, too.\n"

// gcloudList writes a list with a separator that does not occur in the values (gcloud topic escaping).
func gcloudList(values []string) string {
	for _, separator := range []string{",", ";", "|", "~", "#", "!", "%", "_", "+"} {
		if !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, separator) }) {
			if separator == "," && !strings.HasPrefix(values[0], "^") {
				return strings.Join(values, ",")
			}
			return "^" + separator + "^" + strings.Join(values, separator)
		}
	}
	// No audience holds this one: it would have to hold all of the above, and the digest of them all.
	separator := "~" + trust.Digest(strings.Join(values, "\n")) + "~"
	return "^" + separator + "^" + strings.Join(values, separator)
}

func writeProvider(i trust.Identity, side relation) string {
	pool := i.SharedName(side.number + "\n" + side.pool)
	remark, condition := "", []trust.Member(nil)
	if i.Bearer != (trust.Bearer{}) {
		remark, condition = joinConditions, []trust.Member{{"attribute_condition", i.Condition("assertion")}}
	}
	return remark + trust.Block("resource", []string{"google_iam_workload_identity_pool", pool}, trust.Member{"project", side.number}, trust.Member{"workload_identity_pool_id", side.pool}) + "\n" +
		trust.Block("resource", []string{"google_iam_workload_identity_pool_provider", i.SharedName(side.number + "\n" + side.pool + "\n" + side.provider)}, append([]trust.Member{{"project", side.number},
			{"workload_identity_pool_id", trust.Reference("google_iam_workload_identity_pool." + pool + ".workload_identity_pool_id")},
			{"workload_identity_pool_provider_id", side.provider},
			{"attribute_mapping", trust.Object{{"google.subject", "assertion.sub"}}},
			{"oidc", trust.Nested{{"issuer_uri", i.Issuer}, {"allowed_audiences", side.audiences}}}}, condition...)...)
}

func writeTerraform(i trust.Identity, side relation) string {
	name := i.ResourceName()
	text := "# With hashicorp/google 4 or newer. Pool and provider are there already: --provider prints them.\n"
	if i.Bearer != (trust.Bearer{}) {
		text = "# Only the condition of the provider keeps other tokens of the identity out: --provider prints it with the same flags, apply that first.\n"
	}
	if side.account != "" {
		return text + trust.Block("resource", []string{"google_service_account_iam_member", name},
			trust.Member{"service_account_id", fmt.Sprintf("projects/%s/serviceAccounts/%s", side.project, side.account)},
			trust.Member{"role", "roles/iam.workloadIdentityUser"}, trust.Member{"member", side.principal})
	}
	return text + "# What the identity may do, such as roles/storage.objectViewer.\nvariable \"" + name + "_role\" {\n  type = string\n}\n\n" +
		trust.Block("resource", []string{"google_project_iam_member", name}, trust.Member{"project", side.project},
			trust.Member{"role", trust.Reference("var." + name + "_role")}, trust.Member{"member", side.principal})
}
