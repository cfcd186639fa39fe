package gcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/gcp"
	"github.com/credence-id/credence/internal/target/targettest"
)

const (
	provider = "projects/112233445566/locations/global/workloadIdentityPools/gardener-pool/providers/gardener"
	account  = "backup@my-project.iam.gserviceaccount.com"
	head     = `{"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"my-project","workloadIdentityPoolProvider":"` + provider + `"`
)

func suite() targettest.Suite {
	return targettest.Suite{Adapter: gcp.Adapter{}, Accepted: []string{head + `,"serviceAccount":"` + account + `"}`, head + `}`}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, gcp.System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"projectID": {
			"my-project": true, "abcdef": true, "a23456789012345678901234567890": true,
			"abcde": false, "a234567890123456789012345678901": false, "1bcdef": false, "my-project-": false, "My-project": false, "my_project": false, "my-project\n": false, "": false,
		},
		"workloadIdentityPoolProvider": {
			provider:                           true,
			"//iam.googleapis.com/" + provider: false, "https://iam.googleapis.com/" + provider: false, provider + "/": false, provider + "\n": false, provider + `","token_url":"https://evil.example`: false,
			strings.Replace(provider, "112233445566", "my-project", 1): false, strings.Replace(provider, "112233445566", "0", 1): false, strings.Replace(provider, "global", "europe-west1", 1): false,
			strings.Replace(provider, "gardener-pool", "abc", 1): false, strings.Replace(provider, "gardener-pool", strings.Repeat("p", 33), 1): false, strings.Replace(provider, "gardener-pool", strings.Repeat("p", 32), 1): true,
			strings.Replace(provider, "gardener-pool", "../../evil", 1): false, "": false,
		},
		"serviceAccount": {
			account: true, "112233445566-compute@developer.gserviceaccount.com": true, "my-project@appspot.gserviceaccount.com": true, "": true,
			"backup@my-project.iam.gserviceaccount.com.evil.example": false, "a/../b@my-project.iam.gserviceaccount.com": false, "backup@example.com": false, "backup": false,
			"backup@my-project.iam.gserviceaccount.com:generateAccessToken#": false, account + "\n": false, "x@my-project.iam.gserviceaccount.com": false,
		},
	})
}

func TestNothingIsPassedThrough(t *testing.T) {
	for _, name := range []string{"token_url", "tokenURL", "serviceAccountImpersonationURL", "service_account_impersonation_url", "credential_source", "credentialsConfig", "audience", "universe_domain"} {
		_, errs := gcp.Adapter{}.Parse([]byte(head+`,"`+name+`":"https://evil.example"}`), field.NewPath("x"))
		if len(errs) != 1 || errs[0].Field != "x."+name {
			t.Errorf("%s: %v, want it refused", name, errs)
		}
	}
}

func TestInjection(t *testing.T) {
	const (
		impersonation = `"service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/` + account + `:generateAccessToken",`
		start         = `{"audience":"//iam.googleapis.com/` + provider + `","credential_source":{"file":"`
		middle        = `","format":{"type":"text"}},`
		end           = `"subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"https://sts.googleapis.com/v1/token","type":"external_account","universe_domain":"googleapis.com"}`
	)
	for _, test := range []struct {
		config            string
		place             target.Place
		json, credentials string
	}{
		{suite().Accepted[0], target.SecretPlace("gcp"), start + "/var/run/workload-identity/gcp/token" + middle + impersonation + end, "/var/run/workload-identity/gcp/credentialsConfig"},
		{suite().Accepted[1], target.PodPlace(target.Linux, target.DefaultMountPath, "one"), start + "/var/run/secrets/workload-identity/one/token" + middle + end, "/var/run/secrets/workload-identity/one/credentialsConfig"},
		{suite().Accepted[1], target.PodPlace(target.Windows, target.DefaultMountPath, "one"), start + `C:\\var\\run\\secrets\\workload-identity\\one\\token` + middle + end, `C:\var\run\secrets\workload-identity\one\credentialsConfig`},
	} {
		config, errs := gcp.Adapter{}.Parse([]byte(test.config), field.NewPath("x"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		want := target.Injection{
			Keys:   []target.Key{{Name: "credentialsConfig", Content: test.json}, {Name: "projectID", Content: "my-project"}},
			Mounts: []string{"credentialsConfig"},
			Env: []target.Variable{
				{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: test.credentials},
				{Name: "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", Value: test.credentials},
				{Name: "GOOGLE_CLOUD_PROJECT", Value: "my-project", Default: true},
			},
		}
		if diff := cmp.Diff(want, config.Injection(test.place)); diff != "" {
			t.Errorf("injection (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"//iam.googleapis.com/" + provider, "https://iam.googleapis.com/" + provider}, config.Audiences()); diff != "" {
			t.Errorf("audiences (-want +got):\n%s", diff)
		}
		if account := config.Account(); len(account) != 1 || account[0].Path.String() != "x.projectID" || account[0].Value != "my-project" {
			t.Errorf("account %+v", account)
		}
	}
}

func TestLimits(t *testing.T) {
	limits := gcp.Adapter{}.Limits()
	if limits.Lifetime >= 48*time.Hour || limits.Lifetime < 47*time.Hour || limits.Subject != 127 || limits.Audiences != 10 || limits.Audience != 256 {
		t.Errorf("limits %+v", limits)
	}
}
