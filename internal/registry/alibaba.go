package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

// alibaba is an instance of Alibaba Cloud Container Registry Enterprise Edition: STS gives an access key of the identity's RAM role
// (AssumeRoleWithOIDC), and the instance a temporary password for it (GetAuthorizationToken).
type alibaba struct {
	// InstanceID is cri-….
	InstanceID string `json:"instanceID"`
	// Region is that of the instance, whose host may be one of its owner.
	Region string `json:"region"`
	CAFile string `json:"caFile"`
}

var (
	alibabaInstances = regexp.MustCompile(`^cri-[a-z0-9]+$`)
	alibabaRegions   = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
)

func newAlibaba(_ string, settings json.RawMessage) (exchange, error) {
	var s alibaba
	if err := strictjson.Known(settings, &s); err != nil {
		return nil, err
	}
	switch {
	case !alibabaInstances.MatchString(s.InstanceID):
		return nil, errors.New("instanceID is not the ID of an instance of the Enterprise Edition, such as cri-kmsiwlxxdcvaduwb")
	case !alibabaRegions.MatchString(s.Region):
		return nil, errors.New("region is not the ID of the instance's region, such as eu-central-1")
	}
	return s, nil
}

func (s alibaba) credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error) {
	variables, err := token.variables("alicloud")
	if err != nil {
		return Credentials{}, err
	}
	key, err := s.assume(ctx, token, variables, now())
	if err != nil {
		return Credentials{}, err
	}
	return s.password(ctx, key, now())
}

// assume returns an access key of the role.
func (s alibaba) assume(ctx context.Context, token Token, variables map[string]string, now time.Time) (key, error) {
	query := url.Values{"Action": {"AssumeRoleWithOIDC"}, "Version": {"2015-04-01"}, "Format": {"JSON"}, "Timestamp": {now.UTC().Format(time.RFC3339)}}
	e := endpoint{Endpoint: "https://sts." + s.Region + ".aliyuncs.com/?" + query.Encode(), CAFile: s.CAFile, cloud: "alicloud",
		refused: "compare the OIDC provider and the role's trust policy with issuer, audience and subject of the identity"}
	var answer struct {
		Credentials struct {
			AccessKeyID     string `json:"AccessKeyId"`
			AccessKeySecret string
			SecurityToken   string
		}
	}
	err := e.postForm(ctx, url.Values{
		"RoleArn": {variables["ALIBABA_CLOUD_ROLE_ARN"]}, "OIDCProviderArn": {variables["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"]},
		"RoleSessionName": {cmp.Or(variables["ALIBABA_CLOUD_ROLE_SESSION_NAME"], sessionName)}, "OIDCToken": {token.Value.Reveal()},
	}, &answer, token.Value.Reveal())
	if err != nil {
		return key{}, err
	}
	got := answer.Credentials
	if got.AccessKeyID == "" || got.AccessKeySecret == "" || got.SecurityToken == "" {
		return key{}, e.unexpected("its answer has no AccessKeyId, AccessKeySecret and SecurityToken")
	}
	return key{got.AccessKeyID, got.AccessKeySecret, got.SecurityToken}, nil
}

// password returns the credentials of the instance. They end with the access key.
func (s alibaba) password(ctx context.Context, key key, now time.Time) (Credentials, error) {
	e := endpoint{Endpoint: "https://cr." + s.Region + ".aliyuncs.com/?InstanceId=" + s.InstanceID, CAFile: s.CAFile, cloud: "alicloud",
		refused: "let the role do cr:GetAuthorizationToken and cr:PullRepository, and compare instanceID and region"}
	request, err := e.request(ctx, "", nil)
	if err != nil {
		return Credentials{}, err
	}
	// The key was made for this request, so that what is made of its session token is new, too.
	key.signAlibaba(request, nil, "GetAuthorizationToken", "2018-12-01", sum([]byte(key.session))[:32], now)
	var answer struct {
		TempUsername       string
		AuthorizationToken string
		ExpireTime         int64 // Unix time in milliseconds
	}
	if err := e.do(request, json.Unmarshal, &answer, key.secret, key.session); err != nil {
		return Credentials{}, err
	}
	if answer.TempUsername == "" || answer.AuthorizationToken == "" {
		return Credentials{}, e.unexpected("its answer has no TempUsername and AuthorizationToken")
	}
	return Credentials{Username: answer.TempUsername, Password: identity.NewToken(answer.AuthorizationToken), Expires: time.UnixMilli(answer.ExpireTime)}, nil
}
