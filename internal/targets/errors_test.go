package targets_test

import (
	"os"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/targets"
)

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"AADSTS70021": "AADSTS70021",
		`"error_description":"AADSTS70021: No matching federated identity record found for presented assertion. Assertion Issuer: 'https://x'."`: "AADSTS70021",
		"AADSTS700213: No matching federated identity record found for presented assertion subject 'x'":                                          "AADSTS700213",
		"aadsts7002138": "AADSTS7002138",
		"An error occurred (InvalidIdentityToken) when calling the AssumeRoleWithWebIdentity operation: No OpenIDConnect provider found in your account for https://x":              "No OpenIDConnect provider found in your account",
		"An error occurred (AccessDenied) when calling the AssumeRoleWithWebIdentity operation: Not authorized to perform\n  sts:AssumeRoleWithWebIdentity":                         "Not authorized to perform sts:AssumeRoleWithWebIdentity",
		"api error InvalidIdentityToken: Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements": "Couldn't retrieve verification key from your identity provider",
		`oauth2/google: status code 400: {"error":"invalid_grant","error_description":"The audience in ID Token [x] does not match the expected audience."}`:                        "The audience in ID Token … does not match",
		`{"error":"invalid_target","error_description":"The target service indicated by the \"audience\" parameters is invalid."}`:                                                  "invalid_target",
		"botocore.exceptions.NoRegionError: You must specify a region.":                                                                                                             "Missing Region",
		"api error InvalidParameterValue: STS JWT Token has `azp` claim invalid, `azp` must match configured OpenID Client ID":                                                      "must match configured OpenID Client ID",
		"Code: AuthenticationFail.OIDCToken.Expired Message: x":                                                                                                                     "AuthenticationFail.OIDCToken.Expired",
		"error validating token: invalid audience (aud) claim: audience claim does not match any bound audience":                                                                    "invalid audience (aud) claim",
		"error: You must be logged in to the server (Unauthorized)":                                                                                                                 "You must be logged in to the server",
	} {
		got := targets.Explain(text, "")
		if len(got) == 0 || got[0].Code != want {
			t.Errorf("%q is explained as %v, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "AADSTS700219", "AADSTS7002", "xAADSTS70021", "everything is well", strings.Repeat("x", 1<<20) + "AADSTS70021"} {
		if got := targets.Explain(text, ""); len(got) > 0 {
			t.Errorf("%q is explained as %v", text, got[0].Code)
		}
	}
	if got := targets.Explain("invalid_grant AADSTS70021", "azure"); len(got) != 1 || got[0].System != "azure" {
		t.Errorf("errors of others: %v", got)
	}
}

func TestEveryErrorIsFoundByItsNameAndIsInTheReference(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/cloud-errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range targets.Errors("") {
		if got := targets.Explain(e.Code, e.System); len(got) == 0 || got[0].Code != e.Code {
			t.Errorf("%s is not found by its name: %v", e.Code, got)
		}
		if !strings.Contains(string(reference), "| `"+e.Code+"` | "+e.Cause+" |") {
			t.Errorf("the reference lacks: | `%s` | %s |", e.Code, e.Cause)
		}
	}
}

func FuzzExplain(f *testing.F) {
	for _, e := range targets.Errors("") {
		f.Add(e.Code)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range targets.Explain(text, "") {
			if len(targets.Explain(text, e.System)) == 0 {
				t.Errorf("%s is found, but not as an error of %s", e.Code, e.System)
			}
		}
	})
}
