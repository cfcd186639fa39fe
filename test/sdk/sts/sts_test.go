package sts

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/test/sdk/plane"
)

// service is a token service as its clients see it.
type service struct {
	limits limits
	// algorithm is what every token is signed with, unless a case has another.
	algorithm identity.Algorithm
	// host is set up with a trust, and asked with the body.
	settings func(Trust) Settings
	host     string
	path     string
	body     func(token string) url.Values
}

func services() map[string]service {
	return map[string]service{
		"aws": {
			limits: awsLimits(), algorithm: identity.ES256,
			settings: func(trust Trust) Settings {
				return Settings{AWS: []AWSRole{{ARN: "arn:aws:iam::112233445566:role/one", Trust: trust}}}
			},
			host: "sts.amazonaws.com", path: "/",
			body: func(token string) url.Values {
				return url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {"arn:aws:iam::112233445566:role/one"}, "WebIdentityToken": {token}}
			},
		},
		"azure": {
			limits: azureLimits(), algorithm: identity.RS256,
			settings: func(trust Trust) Settings {
				return Settings{Azure: []AzureApplication{{Tenant: "tenant", ClientID: "client", Trust: trust}}}
			},
			host: "login.microsoftonline.com", path: "/tenant/oauth2/v2.0/token",
			body: func(token string) url.Values {
				return url.Values{
					"grant_type": {"client_credentials"}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
					"client_id": {"client"}, "client_assertion": {token},
				}
			},
		},
		"google": {
			limits: googleLimits(), algorithm: identity.ES256,
			settings: func(trust Trust) Settings {
				return Settings{Google: []GoogleProvider{{Name: "projects/1/providers/one", Trust: trust}}}
			},
			host: "sts.googleapis.com", path: "/v1/token",
			body: func(token string) url.Values {
				return url.Values{
					"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
					"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}, "audience": {"//iam.googleapis.com/projects/1/providers/one"}, "subject_token": {token},
				}
			},
		},
		"alibaba": {
			limits: alibabaLimits(), algorithm: identity.RS256,
			settings: func(trust Trust) Settings {
				return Settings{Alibaba: []AlibabaRole{{ARN: "acs:ram::1:role/one", ProviderARN: "acs:ram::1:oidc-provider/one", Trust: trust}}}
			},
			host: "sts.aliyuncs.com", path: "/",
			body: func(token string) url.Values {
				return url.Values{"Action": {"AssumeRoleWithOIDC"}, "RoleArn": {"acs:ram::1:role/one"}, "OIDCProviderArn": {"acs:ram::1:oidc-provider/one"}, "OIDCToken": {token}}
			},
		},
	}
}

// Every reason to refuse a token is seen at every cloud that has it, with the code of the cloud; and a token that is just
// within its limits is accepted.
func TestEveryRefusal(t *testing.T) {
	codes := map[string]map[reason]string{"aws": {}, "azure": {}, "google": {}, "alibaba": {}}
	for reason, refusal := range awsRefusals {
		codes["aws"][reason] = "<Code>" + refusal.code + "</Code>"
	}
	for reason, refusal := range azureRefusals {
		codes["azure"][reason] = "AADSTS" + strconv.Itoa(refusal.number) + ":"
	}
	for reason, refusal := range googleRefusals {
		codes["google"][reason] = `"error":"` + refusal.code + `"`
	}
	for reason, refusal := range alibabaRefusals {
		codes["alibaba"][reason] = `"Code":"` + refusal.code + `"`
	}
	published := newDocuments(t)
	for name, s := range services() {
		cases := s.cases(t, published)
		seen := map[reason]bool{}
		for _, c := range cases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				c.documents = published
				status, body := s.ask(t, c)
				if c.want == "" {
					if status != http.StatusOK {
						t.Errorf("refused: %s", body)
					}
					return
				}
				seen[c.want] = true
				if status == http.StatusOK || !strings.Contains(body, codes[name][c.want]) {
					t.Errorf("answer %d %s, want a refusal with %s", status, body, codes[name][c.want])
				}
			})
		}
		want := slices.Sorted(maps.Keys(codes[name]))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen))); diff != "" {
			t.Errorf("%s: reasons that were seen (-want +got):\n%s", name, diff)
		}
	}
}

// refusalCase is a token, and why it is refused; want is empty if it is not.
type refusalCase struct {
	name      string
	token     string
	trust     Trust
	documents *documents
	// client fetches the documents; nil stands for one that trusts the issuer's certificate.
	client *http.Client
	want   reason
}

func (s service) cases(t *testing.T, d *documents) []refusalCase {
	const aud = "one"
	subjectOf := func(name string) string {
		subject, err := identity.NewSubject("shop", name, "uid")
		if err != nil {
			t.Fatal(err)
		}
		return string(subject)
	}
	trust := Trust{Issuer: d.plane.Issuer(), Audience: aud, Subject: subjectOf("cart")}
	base := issuer.Request{Identity: issuer.Identity{Namespace: "shop", Name: "cart", UID: "uid"}, Audiences: []string{aud}, TargetAlgorithm: s.algorithm}
	sign := func(p *plane.Plane, at time.Time, change func(*issuer.Request)) string {
		request := base
		if change != nil {
			change(&request)
		}
		issued, err := p.Issue(request, at)
		if err != nil {
			t.Fatal(err)
		}
		return issued.Token.Reveal()
	}
	now := time.Now()
	good := sign(d.plane, now, nil)
	stranger, err := plane.New(d.plane.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := plane.New("https://elsewhere.example.com")
	if err != nil {
		t.Fatal(err)
	}
	cases := []refusalCase{
		{name: "good", token: good, trust: trust},
		{name: "one of two audiences", token: sign(d.plane, now, func(r *issuer.Request) { r.Audiences = []string{"two", aud} }), trust: trust},
		{name: "not a token", token: "abc", trust: trust, want: malformed},
		{name: "no JSON", token: "YWJj.YWJj.YWJj", trust: trust, want: malformed},
		{name: "other issuer", token: sign(elsewhere, now, nil), trust: trust, want: otherIssuer},
		{name: "issuer that is not known", token: good, trust: Trust{Issuer: "https://localhost:1", Audience: aud, Subject: trust.Subject}, want: otherIssuer},
		{name: "issuer with another certificate", token: good, trust: trust, client: &http.Client{}, want: unreachable},
		{name: "key that is not published", token: sign(stranger, now, nil), trust: trust, want: unverifiable},
		{name: "changed claims", token: swap(good, sign(d.plane, now, func(r *issuer.Request) { r.Identity.UID = "uid2" })), trust: trust, want: unverifiable},
		{name: "no signature", token: good[:strings.LastIndex(good, ".")+1], trust: trust, want: unverifiable},
		{name: "from the future", token: sign(d.plane, now.Add(time.Hour), nil), trust: trust, want: notYetValid},
		{name: "expired", token: sign(d.plane, now.Add(-2*time.Hour), nil), trust: trust, want: expired},
		{name: "other audience", token: good, trust: Trust{Issuer: trust.Issuer, Audience: "on", Subject: trust.Subject}, want: audience},
		{name: "other subject", token: good, trust: Trust{Issuer: trust.Issuer, Audience: aud, Subject: subjectOf("car")}, want: subject},
		{name: "subject in other letters", token: good, trust: Trust{Issuer: trust.Issuer, Audience: aud, Subject: strings.ToUpper(trust.Subject)}, want: subject},
		{name: "RS256", token: sign(d.plane, now, func(r *issuer.Request) { r.TargetAlgorithm = identity.RS256 }), trust: trust},
	}
	es256 := refusalCase{name: "ES256", token: sign(d.plane, now, func(r *issuer.Request) { r.TargetAlgorithm = identity.ES256 }), trust: trust}
	if !slices.Contains(s.limits.algorithms, "ES256") {
		es256.want = algorithm
	}
	// {"alg":"none"}
	unsigned := "eyJhbGciOiJub25lIn0" + good[strings.Index(good, "."):strings.LastIndex(good, ".")+1]
	cases = append(cases, es256, refusalCase{name: "unsigned", token: unsigned, trust: trust, want: algorithm})
	for _, limited := range []struct {
		name   string
		is     bool
		at     time.Time
		change func(*issuer.Request)
		want   reason
	}{
		{"longest lifetime", s.limits.lifetime > 0 && !s.limits.below, now, func(r *issuer.Request) { r.Lifetime = s.limits.lifetime }, ""},
		{"lifetime too long", s.limits.lifetime > 0 && !s.limits.below, now, func(r *issuer.Request) { r.Lifetime = s.limits.lifetime + time.Second }, lifetime},
		{"lifetime just below", s.limits.below, now, func(r *issuer.Request) { r.Lifetime = s.limits.lifetime - time.Second }, ""},
		{"lifetime not below", s.limits.below, now, func(r *issuer.Request) { r.Lifetime = s.limits.lifetime }, lifetime},
		{"issued as long ago as allowed", s.limits.age > 0, now.Add(-s.limits.age + 10*time.Minute), func(r *issuer.Request) { r.Lifetime = 24 * time.Hour }, ""},
		{"issued too long ago", s.limits.age > 0, now.Add(-s.limits.age - time.Minute), func(r *issuer.Request) { r.Lifetime = 24 * time.Hour }, tooOld},
		{"long token", s.limits.token > 0, now, func(r *issuer.Request) { r.Audiences = []string{aud, strings.Repeat("x", 14000)} }, ""},
		{"token too long", s.limits.token > 0, now, func(r *issuer.Request) { r.Audiences = []string{aud, strings.Repeat("x", 15000)} }, tooLong},
	} {
		if limited.is {
			cases = append(cases, refusalCase{name: limited.name, token: sign(d.plane, limited.at, limited.change), trust: trust, want: limited.want})
		}
	}
	if s.limits.subject > 0 {
		for more, want := range map[int]reason{0: "", 1: subjectSize} {
			long := strings.Repeat("x", s.limits.subject-len(subjectOf("x"))+1+more)
			cases = append(cases, refusalCase{
				name: "subject of " + strconv.Itoa(len(subjectOf(long))) + " bytes", want: want,
				token: sign(d.plane, now, func(r *issuer.Request) { r.Identity.Name = long }),
				trust: Trust{Issuer: trust.Issuer, Audience: aud, Subject: subjectOf(long)},
			})
		}
	}
	return cases
}

// ask sends a token to a stand-in of its own.
func (s service) ask(t *testing.T, c refusalCase) (status int, body string) {
	t.Helper()
	settings := s.settings(c.trust)
	settings.Client = c.client
	if c.client == nil {
		settings.Client = c.documents.client
	}
	server := New(settings)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.host+s.path, strings.NewReader(s.body(c.token).Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	if granted := len(server.Grants()) > 0; granted != (recorder.Code == http.StatusOK) {
		t.Errorf("status %d, and grants: %t", recorder.Code, granted)
	}
	return recorder.Code, recorder.Body.String()
}

// documents are those of a plane that is found at the URL of its issuer.
type documents struct {
	plane  *plane.Plane
	client *http.Client
}

func newDocuments(t *testing.T) *documents {
	t.Helper()
	var d documents
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.plane.Documents().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	tokens, err := plane.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	d.plane, d.client = tokens, server.Client()
	return &d
}

// swap puts the claims of one token under the signature of another.
func swap(signed, claimed string) string {
	parts, other := strings.Split(signed, "."), strings.Split(claimed, ".")
	return parts[0] + "." + other[1] + "." + parts[2]
}
