package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/targets"
)

const (
	awsFields   = `"iamRoleARN":"arn:aws:iam::112233445566:role/gardener-dev"`
	azureFields = `"clientID":"0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21","tenantID":"aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910"`
	gcpProvider = `projects/112233445566/locations/global/workloadIdentityPools/gardener-pool/providers/gardener`
	gcpFields   = `"projectID":"my-project","workloadIdentityPoolProvider":"` + gcpProvider + `"`
	aliFields   = `"roleARN":"acs:ram::1122334455667788:role/dev","oidcProviderARN":"acs:ram::1122334455667788:oidc-provider/gardener"`
)

func providerConfig(targetType, fields string) string {
	return `{"apiVersion":"` + targetType + `.authentication.gardener.cloud/v1alpha1","kind":"Config",` + fields + `}`
}

// configured is an identity with a providerConfig.
func configured(name, targetType, providerConfig string, audiences ...string) string {
	return strings.Replace(identityJSON(name, targetType, audiences...), `"type"`, `"providerConfig":`+providerConfig+`,"type"`, 1)
}

func TestTargetSystems(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	cases := map[string]struct {
		fields, audience string
		longest          time.Duration
	}{
		"aws":        {awsFields, "sts.amazonaws.com", 48 * time.Hour},
		"azure":      {azureFields, "api://AzureADTokenExchange", 25 * time.Hour},
		"gcp":        {gcpFields, "//iam.googleapis.com/" + gcpProvider, 48*time.Hour - time.Second},
		"alicloud":   {aliFields, "sts.aliyuncs.com", 12 * time.Hour},
		"kubernetes": {`"server":"https://api.example.com:6443"`, "cluster", 48 * time.Hour},
	}
	for _, targetType := range targets.Types() {
		if _, ok := cases[targetType]; !ok && targetType != "generic" { // which has no rules
			t.Errorf("no case for %s", targetType)
		}
	}
	for targetType, test := range cases {
		t.Run(targetType, func(t *testing.T) {
			admin, path := shared.config(t), identitiesPath(namespace)
			got := do(t, admin, "POST", path, "application/json", configured(targetType, targetType, providerConfig(targetType, test.fields), test.audience))
			if warning := got.Header.Get("Warning"); got.Code != 201 || warning != "" {
				t.Fatalf("create: %d, warning %q: %s", got.Code, warning, got.Body)
			}
			got = do(t, admin, "POST", tokenPath(namespace, targetType), "application/json", tokenRequest(`{"duration":"48h"}`))
			_, claims := claims(t, decodeTokenRequest(t, got).Status.Token)
			if lifetime := time.Duration(claims["exp"].(float64)-claims["iat"].(float64)) * time.Second; lifetime != test.longest {
				t.Errorf("a token for %s, want %s", lifetime, test.longest)
			}
			if warning := got.Header.Get("Warning"); (test.longest < 48*time.Hour) != strings.Contains(warning, "shortened to "+test.longest.String()+", the longest that "+targetType+" accepts") {
				t.Errorf("warning %q", warning)
			}
			other := map[bool]string{true: "gcp", false: "aws"}[targetType == "aws"]
			for name, refused := range map[string]struct{ config, field string }{
				"unknown field":         {providerConfig(targetType, test.fields+`,"unheardOf":"x"`), "unheardOf"},
				"of another target":     {providerConfig(other, test.fields), "apiVersion"},
				"of another kind":       {strings.Replace(providerConfig(targetType, test.fields), `"Config"`, `"Role"`, 1), "kind"},
				"ends with a line end":  {strings.Replace(providerConfig(targetType, test.fields), `"}`, `\n"}`, 1), ""},
				"has a line end inside": {strings.Replace(providerConfig(targetType, test.fields), `"}`, `\nregion=x"}`, 1), ""},
			} {
				got := do(t, admin, "POST", path, "application/json", configured("refused", targetType, refused.config, test.audience))
				if got.Code != 422 || !strings.Contains(string(got.Body), "spec.targetSystem.providerConfig."+refused.field) {
					t.Errorf("%s: %d %s", name, got.Code, got.Body)
				}
			}
		})
	}
}

func TestAccountsAreImmutable(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin, path := shared.config(t), identitiesPath(namespace)
	for name, body := range map[string]string{
		"aws":      configured("aws", "aws", providerConfig("aws", awsFields), "a"),
		"alicloud": configured("alicloud", "alicloud", providerConfig("alicloud", aliFields), "a"),
		"azure":    configured("azure", "azure", providerConfig("azure", azureFields), "a"),
		"gcp":      configured("gcp", "gcp", providerConfig("gcp", gcpFields), "a"),
	} {
		if got := do(t, admin, "POST", path, "application/json", body); got.Code != 201 {
			t.Fatalf("create %s: %d %s", name, got.Code, got.Body)
		}
	}
	for name, test := range map[string]struct {
		identity, patch string
		code            int
		field           string
	}{
		"role":                {"aws", `{"iamRoleARN":"arn:aws:iam::112233445566:role/other"}`, 200, ""},
		"account of AWS":      {"aws", `{"iamRoleARN":"arn:aws:iam::998877665544:role/gardener-dev"}`, 422, "iamRoleARN: Invalid value: \\\"arn:aws:iam::998877665544\\\": is immutable"},
		"to a store":          {"aws", `{"endpoint":"https://minio.example"}`, 422, "endpoint"},
		"account of Alibaba":  {"alicloud", `{"roleARN":"acs:ram::8877665544332211:role/dev","oidcProviderARN":"acs:ram::8877665544332211:oidc-provider/gardener"}`, 422, "roleARN"},
		"two accounts":        {"alicloud", `{"oidcProviderARN":"acs:ram::8877665544332211:oidc-provider/gardener"}`, 422, "oidcProviderARN"},
		"client":              {"azure", `{"clientID":"1f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21"}`, 200, ""},
		"tenant":              {"azure", `{"tenantID":"bb6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910"}`, 422, "tenantID"},
		"tenant taken away":   {"azure", `{"tenantID":null}`, 422, "tenantID"},
		"project":             {"gcp", `{"projectID":"your-project"}`, 422, "projectID"},
		"all of it":           {"gcp", `null`, 422, "projectID"},
		"provider":            {"gcp", `{"workloadIdentityPoolProvider":"` + gcpProvider + `-2"}`, 200, ""},
		"an invalid provider": {"gcp", `{"workloadIdentityPoolProvider":"elsewhere"}`, 422, "workloadIdentityPoolProvider"},
	} {
		got := do(t, admin, "PATCH", path+"/"+test.identity, "application/merge-patch+json", `{"spec":{"targetSystem":{"providerConfig":`+test.patch+`}}}`)
		if got.Code != test.code || test.field != "" && !strings.Contains(string(got.Body), "spec.targetSystem.providerConfig."+test.field) {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	if got := do(t, admin, "PATCH", path+"/azure", "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`); got.Code != 200 || got.Header.Get("Warning") != "" {
		t.Errorf("a label: %d, warning %q", got.Code, got.Header.Get("Warning"))
	}
}

func TestLimitsOfTargets(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin, path := shared.config(t), identitiesPath(namespace)
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf("audience-%d", i)
	}
	fits := 57 - len(namespace)
	for name, test := range map[string]struct {
		body string
		code int
		text string
	}{
		"subject of 127 for gcp":  {identityJSON(strings.Repeat("a", fits), "gcp", "a"), 201, ""},
		"subject of 128 for gcp":  {identityJSON(strings.Repeat("a", fits+1), "gcp", "a"), 422, "would be 128 bytes long, gcp accepts at most 127"},
		"the same for aws":        {identityJSON(strings.Repeat("a", fits+1), "aws", "a"), 201, ""},
		"11 audiences for gcp":    {identityJSON("x", "gcp", many...), 422, "gcp accepts at most 10 audiences"},
		"audience of 257 for gcp": {identityJSON("x", "gcp", strings.Repeat("a", 257)), 422, "is 257 characters long, gcp accepts at most 256"},
	} {
		got := do(t, admin, "POST", path, "application/json", test.body)
		if got.Code != test.code || !strings.Contains(string(got.Body), test.text) {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		var wi v1alpha1.WorkloadIdentity
		if err := json.Unmarshal(got.Body, &wi); test.code == 201 && (err != nil || name == "subject of 127 for gcp" && len(wi.Status.Sub) != 127) {
			t.Errorf("%s: sub %q, %v", name, wi.Status.Sub, err)
		}
	}
}
