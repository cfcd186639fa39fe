package aws_test

import (
	"maps"
	"slices"
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
		head + `,"iamRoleARN":"arn:minio:iam:::role/dFGr3z-6_Vn0","roleSessionName":"session","region":"us-east-1","endpoint":"https://minio.example.com:9000"}`,
		head + `,"iamRoleARN":"arn:aws:iam::112233445566:role/gardener-dev"}`,
		head + `,"iamRoleARN":"arn:aws-cn:iam::112233445566:role/a/b/c","region":"","roleSessionName":""}`,
	}}
}

// ofAWS are those without an endpoint.
func ofAWS() targettest.Suite {
	return targettest.Suite{Adapter: aws.Adapter{}, Accepted: []string{
		head + `,"iamRoleARN":"arn:aws:iam::112233445566:role/gardener-dev","roleSessionName":"session","region":"eu-central-1"}`,
	}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, aws.System(), ofAWS().Accepted[0]) }
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
	config, errs := aws.Adapter{}.Parse([]byte(ofAWS().Accepted[0]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const token = `C:\var\run\secrets\workload-identity\one\token`
	want := target.Injection{
		Keys: []target.Key{{Name: "credentialsFile", Content: "[default]\nrole_arn=arn:aws:iam::112233445566:role/gardener-dev\nweb_identity_token_file=" + token + "\nrole_session_name=session\nregion=eu-central-1\nsts_regional_endpoints=regional\n"}},
		Env: []target.Variable{
			{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::112233445566:role/gardener-dev"},
			{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: token},
			{Name: "AWS_ROLE_SESSION_NAME", Value: "session"},
			{Name: "AWS_REGION", Value: "eu-central-1", Default: true, Alias: "AWS_DEFAULT_REGION"},
			{Name: "AWS_DEFAULT_REGION", Value: "eu-central-1", Default: true, Alias: "AWS_REGION"},
			{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "regional", Default: true},
		},
	}
	if diff := cmp.Diff(want, config.Injection(target.PodPlace(target.Windows, target.DefaultMountPath, "one"))); diff != "" {
		t.Errorf("injection (-want +got):\n%s", diff)
	}
}

func TestFields(t *testing.T) {
	const account = "arn:aws:iam::112233445566:role"
	targettest.Fields(t, targettest.Suite{Adapter: aws.Adapter{}, Accepted: suite().Accepted[1:]}, map[string]map[string]bool{
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
			"arn:minio:iam:::role/x":                     false,
			"arn:aws:iam:::role/x":                       false,
			"":                                           false,
		},
	})
	targettest.Fields(t, ofAWS(), map[string]map[string]bool{
		"roleSessionName": {
			"ab": true, "a": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a+=,.@-_Z9": true, "a b": false, "a/b": false, "a\n": false, "": true,
		},
		"region": {
			"eu-central-1": true, "ap-southeast-7": true, "eu-centrl-1": true, "": true, "us-gov-west-1": false, "cn-north-1": false,
			"eu-central-1a": false, "EU-central-1": false, "eu": false, "eu-central": false, "eu-central-1\nx=y": false,
		},
	})
}

// A role and its region are of one partition. Of a partition that is not known, so are its regions.
func TestRegionsOfPartitions(t *testing.T) {
	regions := map[string]string{
		"us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn", "eusc-de-east-1": "aws-eusc", "us-iso-east-1": "aws-iso", "us-isob-east-1": "aws-iso-b",
		"eu-isoe-west-1": "aws-iso-e", "us-isof-south-1": "aws-iso-f", "eu-central-1": "aws", "us-east-1": "aws", "il-central-1": "aws", "mx-central-1": "aws", "ap-northeast-3": "aws",
	}
	for region, of := range regions {
		for _, partition := range append(slices.Collect(maps.Values(regions)), "aws-of-tomorrow") {
			config, errs := aws.Adapter{}.Parse([]byte(head+`,"iamRoleARN":"arn:`+partition+`:iam::112233445566:role/x","region":"`+region+`"}`), field.NewPath("x"))
			if accepted := len(errs) == 0; accepted != (partition == of || partition == "aws-of-tomorrow" && of == "aws") {
				t.Errorf("region %s with a role of %s: %v", region, partition, errs)
			} else if accepted && len(config.(target.Warner).Warnings()) > 0 {
				t.Errorf("region %s: %v", region, config.(target.Warner).Warnings())
			}
		}
	}
}

// A store has roles and regions of its own, which AWS does not have.
func TestFieldsOfStores(t *testing.T) {
	targettest.Fields(t, suite(), map[string]map[string]bool{
		"iamRoleARN": {
			"arn:minio:iam:::role/dFGr3z-6_Vn0": true, "arn:minio:iam:us-east-1::role/x": true, "arn:aws:iam:::role/x": true, "arn:aws:iam:::role/a/path/x": true,
			"arn:aws:iam::RGW12345678901234567:role/x": true, "arn:aws:iam::tenant_1:role/x": true, "arn:aws:iam::112233445566:role/x": true,
			"arn:minio:iam::1:role/x": false, "arn:minio:iam:::user/x": false, "arn:minio:iam:::role/": false, "arn:minio:iam:::role/x y": false, "arn:minio:iam:::role/x\n": false,
			"arn:aws:iam::a-b:role/x": false, "arn:aws:iam:eu::role/x": false, "arn:evil:iam:::role/x": false, "": false,
		},
		"region": {"us-east-1": true, "default": true, "home": true, "": true, "-x": false, "Home": false, "a b": false, "x\n": false, strings.Repeat("r", 33): false},
		"endpoint": {
			"https://minio.example.com": true, "https://minio.storage.svc:9000": true, "https://10.0.0.1": true,
			"http://minio.example.com": false, "minio.example.com": false, "https://": false, "https://minio.example.com/": false, "https://minio.example.com/x": false, "https://a@minio.example.com": false,
			"https://minio.example.com?x": false, "https://minio.example.com#x": false, "https://minio.example.com:0": false, "https://minio.example.com\n": false, "https://.": false, "https://$(HOME)": false,
		},
	})
}

func TestStore(t *testing.T) {
	config, errs := aws.Adapter{}.Parse([]byte(suite().Accepted[0]), field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const endpoint = "https://minio.example.com:9000"
	injection := config.Injection(target.SecretPlace("aws"))
	if profile := injection.Keys[0].Content; !strings.HasSuffix(profile, "\nendpoint_url="+endpoint+"\n") {
		t.Errorf("the profile does not end with the endpoint:\n%s", profile)
	}
	want := []target.Variable{{Name: "AWS_ENDPOINT_URL_STS", Value: endpoint}, {Name: "AWS_ENDPOINT_URL_S3", Value: endpoint}}
	if diff := cmp.Diff(want, injection.Env[len(injection.Env)-2:]); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// The partition and account of a role never change, nor does it become that of a store.
func TestAccount(t *testing.T) {
	for config, want := range map[string][]string{
		suite().Accepted[0]: {"arn:minio:iam::", "https://minio.example.com:9000"},
		suite().Accepted[1]: {"arn:aws:iam::112233445566", "that of AWS"},
		suite().Accepted[2]: {"arn:aws-cn:iam::112233445566", "that of AWS"},
	} {
		parsed, errs := aws.Adapter{}.Parse([]byte(config), field.NewPath("x"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		account := parsed.Account()
		got := []string{account[0].Value, account[1].Value}
		if diff := cmp.Diff(want, got); diff != "" || account[0].Path.String() != "x.iamRoleARN" || account[1].Path.String() != "x.endpoint" {
			t.Errorf("%s: account %+v:\n%s", config, account, diff)
		}
	}
}
