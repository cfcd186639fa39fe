package alicloud_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/alicloud"
	"github.com/credence-id/credence/internal/target/targettest"
)

const (
	role     = "acs:ram::1122334455667788:role/gardener-dev"
	provider = "acs:ram::1122334455667788:oidc-provider/gardener"
	head     = `{"apiVersion":"alicloud.authentication.gardener.cloud/v1alpha1","kind":"Config","roleARN":"` + role + `","oidcProviderARN":"` + provider + `"`
)

func suite() targettest.Suite {
	return targettest.Suite{Adapter: alicloud.Adapter{}, Accepted: []string{head + `,"roleSessionName":"session","region":"cn-hangzhou"}`, head + `}`}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, alicloud.System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

func TestFields(t *testing.T) {
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"roleARN": {
			role: true, strings.Replace(role, "gardener-dev", strings.Repeat("r", 64), 1): true,
			strings.Replace(role, "gardener-dev", strings.Repeat("r", 65), 1): false, provider: false, "arn:aws:iam::112233445566:role/x": false, "acs:ram::abc:role/x": false, "acs:ram:cn:1122334455667788:role/x": false,
			role + "/x": false, role + "\nx=y": false, role + "$(X)": false, "": false, strings.Replace(role, "gardener", "-", 1): false,
		},
		"oidcProviderARN": {
			provider: true, provider + "@_.+=,": true, role: false, provider + "/x": false, provider + "\n": false, "": false,
			strings.Replace(provider, "88:", "89:", 1): false, strings.Replace(provider, "gardener", "-", 1): false,
		},
		"roleSessionName": {"ab": true, "a": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a.@-_Z9": true, "a+b": false, "a b": false, "": true},
		"region":          {"cn-hangzhou": true, "eu-central-1": true, "cn-north-2-gov-1": true, "CN-hangzhou": false, "cn": false, "cn-hangzhou.evil.example": false, "cn-hangzhou\n": false, "": true},
	})
}

func TestInjection(t *testing.T) {
	const token = `C:\var\run\secrets\workload-identity\one\token`
	config, errs := alicloud.Adapter{}.Parse([]byte(suite().Accepted[0]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := target.Injection{
		Keys: []target.Key{
			{Name: "roleARN", Content: role}, {Name: "oidcProviderARN", Content: provider}, {Name: "workloadIdentityTokenFile", Content: token}, {Name: "roleSessionName", Content: "session"},
		},
		Env: []target.Variable{
			{Name: "ALIBABA_CLOUD_ROLE_ARN", Value: role},
			{Name: "ALIBABA_CLOUD_OIDC_PROVIDER_ARN", Value: provider},
			{Name: "ALIBABA_CLOUD_OIDC_TOKEN_FILE", Value: token},
			{Name: "ALIBABA_CLOUD_ROLE_SESSION_NAME", Value: "session"},
			{Name: "ALIBABA_CLOUD_REGION_ID", Value: "cn-hangzhou", Default: true},
			{Name: "ALIBABA_CLOUD_STS_REGION", Value: "cn-hangzhou", Default: true},
		},
	}
	if diff := cmp.Diff(want, config.Injection(target.PodPlace(target.Windows, target.DefaultMountPath, "one"))); diff != "" {
		t.Errorf("injection (-want +got):\n%s", diff)
	}
	small, errs := alicloud.Adapter{}.Parse([]byte(suite().Accepted[1]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if injection := small.Injection(target.SecretPlace("alicloud")); len(injection.Keys) != 3 || len(injection.Env) != 3 || injection.Keys[2].Content != "/var/run/workload-identity/alicloud/token" {
		t.Errorf("injection without optional fields: %+v", injection)
	}
}

func TestAccount(t *testing.T) {
	config, errs := alicloud.Adapter{}.Parse([]byte(suite().Accepted[0]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []target.Fixed{{Path: field.NewPath("x", "roleARN"), Value: "acs:ram::1122334455667788"}}
	if diff := cmp.Diff(want, config.Account(), cmp.Comparer(func(a, b *field.Path) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}
