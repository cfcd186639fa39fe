package trust

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var poolProvider = regexp.MustCompile(`\Aprojects/([^/]+)/locations/global/workloadIdentityPools/([^/]+)/providers/([^/]+)\z`)

// maxGoogleSubject is the greatest length of google.subject, in bytes (Google, "Workload Identity Federation").
const maxGoogleSubject = 127

type gcpTrust struct {
	project, number, pool, provider string
	account                         string // the service account to impersonate; empty: none
	audiences                       []string
	principal                       string
}

func gcpSide(i Identity) (gcpTrust, error) {
	side := gcpTrust{project: i.fields()["projectID"], account: i.fields()["serviceAccount"], audiences: i.Audiences}
	parts, err := i.parts("workloadIdentityPoolProvider", poolProvider)
	if err != nil {
		return side, err
	}
	side.number, side.pool, side.provider = parts[1], parts[2], parts[3]
	if len(i.Subject) > maxGoogleSubject {
		return side, fmt.Errorf("its subject is %d bytes long, and Google takes at most %d: choose a shorter name or namespace", len(i.Subject), maxGoogleSubject)
	}
	side.principal = fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/%s", side.number, side.pool, i.Subject)
	return side, nil
}

func gcpCommands(i Identity) (string, error) {
	side, err := gcpSide(i)
	if err != nil {
		return "", err
	}
	inPool := [][2]string{{"--project=", side.number}, {"--location=", "global"}}
	text := "# Once for all identities of the issuer.\n" +
		command("gcloud iam workload-identity-pools create "+shell(side.pool), inPool...) + "\n" +
		command("gcloud iam workload-identity-pools providers create-oidc "+shell(side.provider), append(inPool,
			[2]string{"--workload-identity-pool=", side.pool}, [2]string{"--issuer-uri=", i.Issuer},
			[2]string{"--allowed-audiences=", gcloudList(side.audiences)}, [2]string{"--attribute-mapping=", "google.subject=assertion.sub"})...) + "\n"
	if side.account != "" {
		return text + command("gcloud iam service-accounts add-iam-policy-binding "+shell(side.account),
			[2]string{"--project=", side.project}, [2]string{"--role=", "roles/iam.workloadIdentityUser"}, [2]string{"--member=", side.principal}, [2]string{"--condition=", "None"}), nil
	}
	return text + "# ROLE is what the identity may do, such as roles/storage.objectViewer.\n" +
		command("gcloud projects add-iam-policy-binding "+shell(side.project)+" --role=\"$ROLE\"",
			[2]string{"--member=", side.principal}, [2]string{"--condition=", "None"}), nil
}

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
	separator := "~" + digest(strings.Join(values, "\n")) + "~"
	return "^" + separator + "^" + strings.Join(values, separator)
}

func gcpProvider(i Identity) (string, error) {
	side, err := gcpSide(i)
	if err != nil {
		return "", err
	}
	pool := i.sharedName(side.number + "\n" + side.pool)
	return block("resource", []string{"google_iam_workload_identity_pool", pool}, member{"project", side.number}, member{"workload_identity_pool_id", side.pool}) + "\n" +
		block("resource", []string{"google_iam_workload_identity_pool_provider", i.sharedName(side.number + "\n" + side.pool + "\n" + side.provider)}, member{"project", side.number},
			member{"workload_identity_pool_id", reference("google_iam_workload_identity_pool." + pool + ".workload_identity_pool_id")},
			member{"workload_identity_pool_provider_id", side.provider},
			member{"attribute_mapping", object{{"google.subject", "assertion.sub"}}},
			member{"oidc", nested{{"issuer_uri", i.Issuer}, {"allowed_audiences", side.audiences}}}), nil
}

func gcpTerraform(i Identity) (string, error) {
	side, err := gcpSide(i)
	if err != nil {
		return "", err
	}
	name := i.resourceName()
	text := "# Pool and provider are there already: --provider prints them.\n" +
		block("data", []string{"google_iam_workload_identity_pool", name}, member{"project", side.number}, member{"workload_identity_pool_id", side.pool}) + "\n"
	principal := reference(fmt.Sprintf("format(%s, data.google_iam_workload_identity_pool.%s.name, %s)", hcl("principal://iam.googleapis.com/%s/subject/%s"), name, hcl(i.Subject)))
	if side.account != "" {
		return text + block("resource", []string{"google_service_account_iam_member", name},
			member{"service_account_id", fmt.Sprintf("projects/%s/serviceAccounts/%s", side.project, side.account)},
			member{"role", "roles/iam.workloadIdentityUser"}, member{"member", principal}), nil
	}
	return text + "# What the identity may do, such as roles/storage.objectViewer.\nvariable \"" + name + "_role\" {\n  type = string\n}\n\n" +
		block("resource", []string{"google_project_iam_member", name}, member{"project", side.project},
			member{"role", reference("var." + name + "_role")}, member{"member", principal}), nil
}
