package aws_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/aws"
	"github.com/credence-id/credence/internal/target/targettest"
)

const head = `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config"`

func suite() targettest.Suite {
	return targettest.Suite{Adapter: aws.Adapter{}, Accepted: []string{
		head + `,"iamRoleARN":"arn:aws:iam::112233445566:role/gardener-dev","roleSessionName":"session","region":"eu-central-1"}`,
		head + `,"iamRoleARN":"arn:aws:iam::112233445566:role/gardener-dev"}`,
		head + `,"iamRoleARN":"arn:aws-cn:iam::112233445566:role/a/b/c","region":"","roleSessionName":""}`,
	}}
}

func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }

// The sample of GEP-26, "Distribution of Workload Identity Tokens", byte for byte.
func TestSampleOfTheDocument(t *testing.T) {
	config, errs := aws.Adapter{}.Parse([]byte(suite().Accepted[1]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := target.Injection{
		Keys: []target.Key{{Name: "credentialsFile", Content: "[default]\nrole_arn=arn:aws:iam::112233445566:role/gardener-dev\nweb_identity_token_file=/var/run/workload-identity/aws/token\n"}},
		Env: []target.Variable{
			{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::112233445566:role/gardener-dev"},
			{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: "/var/run/workload-identity/aws/token"},
		},
	}
	if diff := cmp.Diff(want, config.Injection(target.SecretPlace("aws"))); diff != "" {
		t.Errorf("injection (-want +got):\n%s", diff)
	}
}

func TestAllFieldsOnWindows(t *testing.T) {
	config, errs := aws.Adapter{}.Parse([]byte(suite().Accepted[0]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const token = `C:\var\run\secrets\workload-identity\one\token`
	want := target.Injection{
		Keys: []target.Key{{Name: "credentialsFile", Content: "[default]\nrole_arn=arn:aws:iam::112233445566:role/gardener-dev\nweb_identity_token_file=" + token + "\nrole_session_name=session\nregion=eu-central-1\n"}},
		Env: []target.Variable{
			{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::112233445566:role/gardener-dev"},
			{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: token},
			{Name: "AWS_ROLE_SESSION_NAME", Value: "session"},
			{Name: "AWS_REGION", Value: "eu-central-1", Default: true, Alias: "AWS_DEFAULT_REGION"},
			{Name: "AWS_DEFAULT_REGION", Value: "eu-central-1", Default: true, Alias: "AWS_REGION"},
		},
	}
	if diff := cmp.Diff(want, config.Injection(target.PodPlace(target.Windows, target.DefaultMountPath, "one"))); diff != "" {
		t.Errorf("injection (-want +got):\n%s", diff)
	}
}

func TestFields(t *testing.T) {
	const account = "arn:aws:iam::112233445566:role"
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"iamRoleARN": {
			account + "/x":                                                  true,
			"arn:aws-cn:iam::112233445566:role/x":                           true,
			"arn:aws-us-gov:iam::112233445566:role/x":                       true,
			"arn:aws-iso:iam::112233445566:role/x":                          true,
			"arn:aws-iso-b:iam::112233445566:role/x":                        true,
			"arn:aws-iso-e:iam::112233445566:role/x":                        true,
			"arn:aws-iso-f:iam::112233445566:role/x":                        true,
			"arn:aws-eusc:iam::112233445566:role/x":                         true,
			"arn:aws-of-tomorrow:iam::112233445566:role/":                   false,
			"arn:aws-of-tomorrow:iam::112233445566:role/x":                  true,
			account + "/aws-reserved/sso.amazonaws.com/eu-west-1/R_1+=,.@-": true,
			account + "/" + strings.Repeat("n", 64):                         true,
			account + "/" + strings.Repeat("n", 65):                         false,
			account + "/" + strings.Repeat("p", 510) + "/n":                 true,
			account + "/" + strings.Repeat("p", 511) + "/n":                 false,
			account:                                      false,
			account + "//x":                              false,
			account + "/x/":                              false,
			account + "/x y":                             false,
			account + "/x;y":                             false,
			account + "/x#y":                             false,
			account + "/x\"y":                            false,
			account + "/$(HOME)":                         false,
			account + "/x\nregion=evil":                  false,
			account + "/é":                               false,
			"arn:aws:iam::11223344556:role/x":            false,
			"arn:aws:iam::1122334455667:role/x":          false,
			"arn:aws:iam::11223344556a:role/x":           false,
			"arn:aws:iam:eu-west-1:112233445566:role/x":  false,
			"arn:aws:iam::112233445566:user/x":           false,
			"arn:aws:sts::112233445566:assumed-role/x/y": false,
			"arn:awsome:iam::112233445566:role/x":        false,
			"arn:aws-:iam::112233445566:role/x":          false,
			"arn:gcp:iam::112233445566:role/x":           false,
			"ARN:aws:iam::112233445566:role/x":           false,
			"":                                           false,
		},
		"roleSessionName": {
			"ab": true, "a": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a+=,.@-_Z9": true, "a b": false, "a/b": false, "a\n": false, "": true,
		},
		"region": {
			"eu-central-1": true, "us-gov-west-1": true, "cn-north-1": true, "us-iso-east-1": true, "us-isob-east-1": true, "eusc-de-east-1": true, "ap-southeast-7": true, "": true,
			"eu-central-1a": false, "EU-central-1": false, "eu": false, "eu-central": false, "eu-central-1\nx=y": false,
		},
	})
}
