package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

// amazon is Amazon ECR, or ECR Public: STS gives an access key of the identity's IAM role (AssumeRoleWithWebIdentity), and ECR a password for it
// (GetAuthorizationToken).
type amazon struct {
	CAFile string `json:"caFile"`

	region, domain string
	public         bool // ECR Public, which is one registry for all of AWS
}

// amazonPublic is the host of ECR Public, whose API is in one region.
const (
	amazonPublic       = "public.ecr.aws"
	amazonPublicRegion = "us-east-1"
)

// amazonHosts are those of private registries: an account, a region and the domain of AWS, or of AWS in China.
var amazonHosts = regexp.MustCompile(`^[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.(amazonaws\.com(?:\.cn)?)$`)

// sessionName is that of sessions of roles, where the identity has none.
const sessionName = "credence-image-credentials"

func newAmazon(host string, settings json.RawMessage) (exchange, error) {
	var s amazon
	if err := strictjson.Known(settings, &s); err != nil {
		return nil, err
	}
	if host == amazonPublic {
		s.region, s.domain, s.public = amazonPublicRegion, "amazonaws.com", true
		return s, nil
	}
	of := amazonHosts.FindStringSubmatch(host)
	if of == nil {
		return nil, fmt.Errorf("images has the host %s: amazon-ecr is for hosts such as 112233445566.dkr.ecr.eu-central-1.amazonaws.com, and for %s", host, amazonPublic)
	}
	s.region, s.domain = of[1], of[2]
	return s, nil
}

func (s amazon) credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error) {
	variables, err := token.variables("aws")
	if err != nil {
		return Credentials{}, err
	}
	if store := variables["AWS_ENDPOINT_URL_STS"]; store != "" {
		return Credentials{}, fmt.Errorf("the identity is for the store at %s: use one for AWS, without endpoint", store)
	}
	key, expires, err := s.assume(ctx, token, variables)
	if err != nil {
		return Credentials{}, err
	}
	return s.password(ctx, key, expires, now())
}

// assume returns an access key of the role, and when it ends.
func (s amazon) assume(ctx context.Context, token Token, variables map[string]string) (key, time.Time, error) {
	e := endpoint{Endpoint: "https://sts." + s.region + "." + s.domain + "/", CAFile: s.CAFile, cloud: "aws", refused: "compare the role's trust policy with issuer, audience and subject of the identity"}
	var answer struct {
		Credentials struct {
			AccessKeyID     string `xml:"AccessKeyId"`
			SecretAccessKey string
			SessionToken    string
			Expiration      time.Time
		} `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	request, err := e.formRequest(ctx, url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {variables["AWS_ROLE_ARN"]},
		"RoleSessionName": {cmp.Or(variables["AWS_ROLE_SESSION_NAME"], sessionName)}, "WebIdentityToken": {token.Value.Reveal()},
	})
	if err != nil {
		return key{}, time.Time{}, err
	}
	// Asked for JSON, it would answer with another document.
	request.Header.Set("Accept", "text/xml")
	if err := e.do(request, xml.Unmarshal, &answer, token.Value.Reveal()); err != nil {
		return key{}, time.Time{}, err
	}
	got := answer.Credentials
	if got.AccessKeyID == "" || got.SecretAccessKey == "" || got.SessionToken == "" {
		return key{}, time.Time{}, e.unexpected("its answer has no AccessKeyId, SecretAccessKey and SessionToken")
	}
	return key{got.AccessKeyID, got.SecretAccessKey, got.SessionToken}, got.Expiration, nil
}

// password returns the credentials of the registries that an access key may pull from, until the key ends at most.
func (s amazon) password(ctx context.Context, key key, ends, now time.Time) (Credentials, error) {
	service, action, refused := "ecr", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken", "let the role do ecr:GetAuthorizationToken, and pull"
	type authorization struct {
		AuthorizationToken []byte  `json:"authorizationToken"`
		ExpiresAt          float64 `json:"expiresAt"` // Unix time in seconds
	}
	var one struct {
		AuthorizationData authorization `json:"authorizationData"`
	}
	var several struct {
		AuthorizationData []authorization `json:"authorizationData"`
	}
	answer := any(&several)
	if s.public {
		service, action, refused = "ecr-public", "SpencerFrontendService.GetAuthorizationToken", "let the role do ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken"
		answer = &one
	}
	e := endpoint{Endpoint: "https://api." + service + "." + s.region + "." + s.domain + "/", CAFile: s.CAFile, cloud: "aws", refused: refused}
	body := []byte("{}")
	request, err := e.request(ctx, "application/x-amz-json-1.1", body)
	if err != nil {
		return Credentials{}, err
	}
	request.Header.Set("X-Amz-Target", action)
	key.signAWS(request, body, service, s.region, now)
	if err := e.do(request, json.Unmarshal, answer, key.secret, key.session); err != nil {
		return Credentials{}, err
	}
	got := one.AuthorizationData
	if len(several.AuthorizationData) > 0 {
		got = several.AuthorizationData[0]
	}
	if got.AuthorizationToken == nil {
		return Credentials{}, e.unexpected("its answer has no authorizationData")
	}
	username, password, found := strings.Cut(string(got.AuthorizationToken), ":")
	if !found || password == "" {
		return Credentials{}, e.unexpected("its authorizationToken is not a user and a password")
	}
	return Credentials{Username: username, Password: identity.NewToken(password), Expires: sooner(ends, time.Unix(int64(got.ExpiresAt), 0))}, nil
}
