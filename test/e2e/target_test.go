package e2e_test

import (
	"strings"
	"testing"
	"time"

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
		account, field   string // a change to another account of the target, and the field that keeps it
	}{
		"aws":        {awsFields, "sts.amazonaws.com", 48 * time.Hour, `{"iamRoleARN":"arn:aws:iam::998877665544:role/gardener-dev"}`, `iamRoleARN: Invalid value: \"arn:aws:iam::998877665544\": is immutable`},
		"azure":      {azureFields, "api://AzureADTokenExchange", 25 * time.Hour, `{"tenantID":null}`, "tenantID"},
		"gcp":        {gcpFields, "//iam.googleapis.com/" + gcpProvider, 48*time.Hour - time.Second, "null", "projectID"},
		"alicloud":   {aliFields, "sts.aliyuncs.com", 12 * time.Hour, `{"roleARN":"acs:ram::8877665544332211:role/dev","oidcProviderARN":"acs:ram::8877665544332211:oidc-provider/gardener"}`, "roleARN"},
		"kubernetes": {`"server":"https://api.example.com:6443"`, "cluster", 48 * time.Hour, `{"server":"https://other.example.com:6443"}`, "server"},
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
			change := `{"spec":{"targetSystem":{"providerConfig":` + test.account + `}}}`
			expect(t, do(t, admin, "PATCH", path+"/"+targetType, mergePatch, change).is(422, "spec.targetSystem.providerConfig."+test.field), "another account")
			other := map[bool]string{true: "gcp", false: "aws"}[targetType == "aws"]
			for name, refused := range map[string]struct{ config, field string }{
				"unknown field":         {providerConfig(targetType, test.fields+`,"unheardOf":"x"`), "unheardOf"},
				"of another target":     {providerConfig(other, test.fields), "apiVersion"},
				"of another kind":       {strings.Replace(providerConfig(targetType, test.fields), `"Config"`, `"Role"`, 1), "kind"},
				"ends with a line end":  {strings.Replace(providerConfig(targetType, test.fields), `"}`, `\n"}`, 1), ""},
				"has a line end inside": {strings.Replace(providerConfig(targetType, test.fields), `"}`, `\nregion=x"}`, 1), ""},
			} {
				expect(t, do(t, admin, "POST", path, "application/json", configured("refused", targetType, refused.config, test.audience)).is(422, "spec.targetSystem.providerConfig."+refused.field), name)
			}
		})
	}
}
