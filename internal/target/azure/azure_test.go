package azure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/azure"
	"github.com/credence-id/credence/internal/target/targettest"
)

const (
	head         = `{"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","kind":"Config"`
	client       = "0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21"
	tenant       = "AA6F4A2C-9E1D-4C3B-8F7E-6D5C4B3A2910"
	subscription = "77777777-1111-2222-3333-444444444444"
)

func suite() targettest.Suite {
	return targettest.Suite{Adapter: azure.Adapter{}, Accepted: []string{
		head + `,"clientID":"` + client + `","tenantID":"` + tenant + `","subscriptionID":"` + subscription + `"}`,
		head + `,"clientID":"` + client + `","tenantID":"` + tenant + `"}`,
	}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, azure.System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	guids := map[string]bool{
		client: true, tenant: true,
		"0f4c1f6e64a54b8b9d0a1c7f5e0a9b21": false, "{" + client + "}": false, client + "\n": false, " " + client: false, client + "0": false, client[1:]: false,
		"0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9bzz": false, "0f4c1f6e-64a5-4b8b-9d0a1-c7f5e0a9b21": false, "$(TENANT)": false,
	}
	targettest.Fields(t, suite(), map[string]map[string]bool{"clientID": guids, "tenantID": guids, "subscriptionID": guids})
	targettest.Fields(t, suite(), map[string]map[string]bool{"clientID": {"": false}, "tenantID": {"": false}, "subscriptionID": {"": true}})
}

func TestInjection(t *testing.T) {
	for _, test := range []struct {
		place target.Place
		token string
	}{
		{target.SecretPlace("azure"), "/var/run/workload-identity/azure/token"},
		{target.PodPlace(target.Windows, target.DefaultMountPath, "one"), `C:\var\run\secrets\workload-identity\one\token`},
	} {
		config, errs := azure.Adapter{}.Parse([]byte(suite().Accepted[0]), field.NewPath("x"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		want := target.Injection{
			Keys: []target.Key{
				{Name: "clientID", Content: client}, {Name: "tenantID", Content: tenant}, {Name: "subscriptionID", Content: subscription},
				{Name: "workloadIdentityTokenFile", Content: test.token},
			},
			Env: []target.Variable{
				{Name: "AZURE_CLIENT_ID", Value: client},
				{Name: "AZURE_TENANT_ID", Value: tenant},
				{Name: "AZURE_FEDERATED_TOKEN_FILE", Value: test.token},
				{Name: "AZURE_AUTHORITY_HOST", Value: "https://login.microsoftonline.com/", Default: true},
				{Name: "AZURE_SUBSCRIPTION_ID", Value: subscription, Default: true},
			},
		}
		if diff := cmp.Diff(want, config.Injection(test.place)); diff != "" {
			t.Errorf("injection (-want +got):\n%s", diff)
		}
	}
}

func TestAccount(t *testing.T) {
	for i, want := range []map[string]string{
		{"x.tenantID": "aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910", "x.subscriptionID": subscription},
		{"x.tenantID": "aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910", "x.subscriptionID": ""},
	} {
		config, errs := azure.Adapter{}.Parse([]byte(suite().Accepted[i]), field.NewPath("x"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got := map[string]string{}
		for _, fixed := range config.Account() {
			got[fixed.Path.String()] = fixed.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("account (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"api://AzureADTokenExchange"}, config.Audiences()); diff != "" {
			t.Errorf("audiences (-want +got):\n%s", diff)
		}
	}
}
