package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func tokenPath(namespace, name string) string {
	return identitiesPath(namespace) + "/" + name + "/token"
}

// tokenRequest returns the body of a TokenRequest with this spec, itself JSON.
func tokenRequest(spec string) string {
	return `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":` + spec + `}`
}

// token requests a token as the user of a configuration.
func token(t *testing.T, config *rest.Config, namespace, name, spec string) v1alpha1.TokenRequest {
	t.Helper()
	got := do(t, config, "POST", tokenPath(namespace, name), "application/json", tokenRequest(spec))
	if got.Code != 201 {
		t.Fatalf("request token: %d %s", got.Code, got.Body)
	}
	return decodeTokenRequest(t, got)
}

func decodeTokenRequest(t *testing.T, got response) v1alpha1.TokenRequest {
	t.Helper()
	var request v1alpha1.TokenRequest
	must(t, json.Unmarshal(got.Body, &request))
	return request
}

// claims decodes a token without checking it; that its signature is right is for the relying parties' tests.
func claims(t *testing.T, text string) (header jose.Header, claims map[string]any) {
	t.Helper()
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	must(t, err, "parse token")
	must(t, parsed.UnsafeClaimsWithoutVerification(&claims))
	return parsed.Headers[0], claims
}

func (p plane) gardenID(t *testing.T) string {
	t.Helper()
	namespace := need(p.client(t).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}))(t)
	return string(namespace.UID)
}

func TestClaims(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	for target, algorithm := range map[string]string{"aws": "ES256", "gcp": "ES256", "azure": "RS256", "generic": "RS256"} {
		wi := shared.create(t, namespace, target, target, "audience")
		before := time.Now().Unix()
		request := token(t, shared.config(t), namespace, target, `{"duration":"2h"}`)
		header, got := claims(t, request.Status.Token)
		if header.Algorithm != algorithm || header.KeyID == "" || header.ExtraHeaders["typ"] != "JWT" {
			t.Errorf("%s: header %+v, want algorithm %s, a kid and typ JWT", target, header, algorithm)
		}
		iat := int64(got["iat"].(float64))
		if after := time.Now().Unix(); iat < before || iat > after {
			t.Errorf("%s: iat %d is not between %d and %d", target, iat, before, after)
		}
		if exp := request.Status.ExpirationTimestamp.Unix(); exp != iat+7200 {
			t.Errorf("%s: expirationTimestamp %d, want iat + 2h = %d", target, exp, iat+7200)
		}
		if jti, ok := got["jti"].(string); !ok || len(jti) != 36 {
			t.Errorf("%s: jti %v", target, got["jti"])
		}
		delete(got, "jti")
		want := map[string]any{
			"iss": shared.Issuer, "sub": wi.Status.Sub, "aud": []any{"audience"},
			"iat": float64(iat), "nbf": float64(iat), "exp": float64(iat + 7200),
			"gardener.cloud": map[string]any{
				"workloadIdentity": map[string]any{"name": target, "namespace": namespace, "uid": string(wi.UID)},
				"garden":           map[string]any{"id": shared.gardenID(t)},
			},
		}
		expect(t, same(want, got), target, "claims")
	}
}

func TestTokenRequest(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin := shared.config(t)
	shared.create(t, namespace, "one", "aws", "a")
	post := func(query, body string) response {
		return do(t, admin, "POST", tokenPath(namespace, "one")+query, "application/json", body)
	}
	t.Run("default duration", func(t *testing.T) {
		_, got := claims(t, token(t, admin, namespace, "one", `{}`).Status.Token)
		if d := got["exp"].(float64) - got["iat"].(float64); d != 3600 {
			t.Errorf("lifetime %v s, want 3600", d)
		}
	})
	t.Run("shortened", func(t *testing.T) {
		got := post("", tokenRequest(`{"duration":"72h"}`))
		if warning := got.Header.Get("Warning"); got.Code != 201 || !strings.Contains(warning, "72h0m0s") || !strings.Contains(warning, "48h0m0s") {
			t.Errorf("code %d, warning %q", got.Code, warning)
		}
		_, c := claims(t, decodeTokenRequest(t, got).Status.Token)
		if d := c["exp"].(float64) - c["iat"].(float64); d != 48*3600 {
			t.Errorf("lifetime %v s, want 48h", d)
		}
	})
	t.Run("answer is not to be stored", func(t *testing.T) {
		if got := post("", tokenRequest(`{}`)); !strings.Contains(strings.Join(got.Header.Values("Cache-Control"), ","), "no-store") {
			t.Errorf("Cache-Control %q", got.Header.Values("Cache-Control"))
		}
	})
	t.Run("dry run", func(t *testing.T) {
		got := post("?dryRun=All", tokenRequest(`{"duration":"1h"}`))
		if request := decodeTokenRequest(t, got); got.Code != 201 || request.Status.Token != "" || request.Status.ExpirationTimestamp.IsZero() {
			t.Errorf("code %d, %s", got.Code, got.Body)
		}
		expect(t, post("?dryRun=All", tokenRequest(`{"duration":"1m"}`)).is(422), "a dry run of a bad request")
	})
	t.Run("status of a client", func(t *testing.T) {
		got := post("", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":{},"status":{"token":"forged","expirationTimestamp":"2000-01-01T00:00:00Z"}}`)
		if request := decodeTokenRequest(t, got); got.Code != 201 || request.Status.Token == "forged" || request.Status.ExpirationTimestamp.Year() == 2000 {
			t.Errorf("code %d, %+v", got.Code, request.Status.ExpirationTimestamp)
		}
	})
	t.Run("nothing but create", func(t *testing.T) {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if got := do(t, admin, method, tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)); got.Code != 405 && got.Code != 404 {
				t.Errorf("%s: code %d, want 405 or 404", method, got.Code)
			}
		}
	})
	for name, test := range map[string]struct {
		body string
		code int
		text string
	}{
		"too short":                {tokenRequest(`{"duration":"9m59s"}`), 422, "spec.duration"},
		"zero":                     {tokenRequest(`{"duration":"0s"}`), 422, "spec.duration"},
		"negative":                 {tokenRequest(`{"duration":"-1h"}`), 422, "spec.duration"},
		"no duration":              {tokenRequest(`{"duration":"soon"}`), 400, ""},
		"duration is a number":     {tokenRequest(`{"duration":3600}`), 400, ""},
		"duration overflows":       {tokenRequest(`{"duration":"9999999999h"}`), 400, ""},
		"truncated":                {tokenRequest(`{"duration":"1h`), 400, ""},
		"not an object":            {`[]`, 400, ""},
		"another kind":             {`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity"}`, 400, ""},
		"another name":             {strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"name":"two"},"spec"`, 1), 422, "metadata.name"},
		"another namespace":        {strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"namespace":"default"},"spec"`, 1), 400, "namespace"},
		"same name":                {strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"name":"one","namespace":"`+namespace+`"},"spec"`, 1), 201, ""},
		"too large":                {tokenRequest(`{"duration":"` + strings.Repeat("1", 4<<20) + `"}`), 413, ""},
		"context without anything": {tokenRequest(`{"contextObject":{}}`), 422, "spec.contextObject.apiVersion"},
		"context without uid":      {tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"a","namespace":"b"}}`), 422, "spec.contextObject.uid"},
		"context no namespace":     {tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"a","uid":"u"}}`), 422, "spec.contextObject.namespace"},
		"context of another kind":  {tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"Pod","name":"a","namespace":"b","uid":"u"}}`), 422, `supported values: \"v1 ServiceAccount\"`},
		"context of other version": {tokenRequest(`{"contextObject":{"apiVersion":"v2","kind":"ServiceAccount","name":"a","namespace":"b","uid":"u"}}`), 422, "v2 ServiceAccount"},
		"context name is a path":   {tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"../secrets/x","namespace":"b","uid":"u"}}`), 422, "spec.contextObject.name"},
		"duplicate key":            {strings.Replace(tokenRequest(`{}`), `"spec"`, `"spec":{},"spec"`, 1), 400, "duplicate field"},
	} {
		t.Run(name, func(t *testing.T) {
			got := post("?fieldValidation=Strict", test.body)
			if got.Code != test.code || !strings.Contains(string(got.Body), test.text) {
				t.Errorf("code %d, want %d with %q: %.500s", got.Code, test.code, test.text, got.Body)
			}
			if got.Code != 201 && strings.Contains(string(got.Body), "eyJ") {
				t.Error("the refusal holds a token")
			}
		})
	}
	t.Run("no such identity", func(t *testing.T) {
		expect(t, do(t, admin, "POST", tokenPath(namespace, "missing"), "application/json", tokenRequest(`{}`)).is(404))
	})
	t.Run("identity is being deleted", func(t *testing.T) {
		shared.create(t, namespace, "leaving", "aws", "a")
		patch := func(body string) {
			must(t, do(t, admin, "PATCH", identitiesPath(namespace)+"/leaving", "application/merge-patch+json", body).is(200), "patch")
		}
		patch(`{"metadata":{"finalizers":["example.com/keep"]}}`)
		do(t, admin, "DELETE", identitiesPath(namespace)+"/leaving", "", "")
		expect(t, do(t, admin, "POST", tokenPath(namespace, "leaving"), "application/json", tokenRequest(`{}`)).is(409))
		patch(`{"metadata":{"finalizers":null}}`)
	})
}

// grant lets a user of the namespace do something, by a Role of its own.
func (p plane) grant(t *testing.T, namespace string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
	t.Helper()
	rbac := p.client(t).RbacV1()
	role := need(rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}))(t)
	need(rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{}))(t)
	p.untilGiven(t, namespace, subject, role.Rules)
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// Each rung is reached only when the one below holds, so that a caller learns nothing that it may not see. The access
// reviews are cached for ten seconds, so each rung has a caller or an account of its own.
func TestContextObject(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	wi := shared.create(t, namespace, "one", "aws", "a")
	account := func(name string) *corev1.ServiceAccount {
		return need(shared.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	}
	allowed, denied := account("allowed"), account("denied")
	mint := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}}
	use := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"workloadidentities"}, ResourceNames: []string{"one"}, Verbs: []string{"use"}}
	shared.grant(t, namespace, user("blind"), mint)
	shared.grant(t, namespace, user("sighted"), mint)
	shared.grant(t, namespace, user("sighted"), read)
	shared.grant(t, namespace, user("impersonator"), mint)
	shared.grant(t, namespace, user("impersonator"), read)
	shared.grant(t, namespace, user("impersonator"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}})
	shared.bind(t, namespace, "credence:agent:identities", user("agent"))
	shared.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "allowed", Namespace: namespace}, use)
	for _, name := range []string{"allowed", "denied"} {
		self := rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace}
		shared.grant(t, namespace, self, mint)
		shared.grant(t, namespace, self, read)
	}
	// A token of the account's own, so that its uid comes along.
	self := func(name string) *rest.Config {
		config := rest.AnonymousClientConfig(shared.config(t))
		token := need(shared.client(t).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
		config.BearerToken = token.Status.Token
		return config
	}

	context := func(name, uid string) string {
		return fmt.Sprintf(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":%q,"namespace":%q,"uid":%q}}`, name, namespace, uid)
	}
	for name, test := range map[string]struct {
		caller       *rest.Config
		account, uid string
		code         int
		text         string
	}{
		"caller may not see it":         {shared.as(t, "blind"), "allowed", string(allowed.UID), 403, "cannot get resource"},
		"caller may not see absence":    {shared.as(t, "blind"), "missing", "u", 403, "cannot get resource"},
		"caller may not act for it":     {shared.as(t, "sighted"), "allowed", string(allowed.UID), 403, "cannot impersonate resource"},
		"caller may not act for absent": {shared.as(t, "sighted"), "missing", "u", 403, "cannot impersonate resource"},
		"another account":               {self("denied"), "allowed", string(allowed.UID), 403, "cannot impersonate resource"},
		"absent":                        {shared.as(t, "impersonator"), "missing", "u", 404, ""},
		"another uid":                   {shared.as(t, "impersonator"), "allowed", "u", 409, string(allowed.UID)},
		"account may not use it":        {shared.as(t, "impersonator"), "denied", string(denied.UID), 403, "grant it the verb use"},
		"account itself may not use it": {self("denied"), "denied", string(denied.UID), 403, "grant it the verb use"},
		"account may":                   {shared.as(t, "impersonator"), "allowed", string(allowed.UID), 201, ""},
		"account itself":                {self("allowed"), "allowed", string(allowed.UID), 201, ""},
		"agent":                         {shared.as(t, "agent"), "allowed", string(allowed.UID), 201, ""},
		"agent, account may not use it": {shared.as(t, "agent"), "denied", string(denied.UID), 403, "grant it the verb use"},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, test.caller, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(context(test.account, test.uid)))
			if got.Code != test.code || !strings.Contains(string(got.Body), test.text) {
				t.Fatalf("code %d, want %d with %q: %s", got.Code, test.code, test.text, got.Body)
			}
			if got.Code != 201 {
				return
			}
			_, c := claims(t, decodeTokenRequest(t, got).Status.Token)
			want := map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "allowed", "uid": string(allowed.UID)}}
			expect(t, same(want, c["kubernetes.io"]), "claim kubernetes.io")
			if c["sub"] != wi.Status.Sub {
				t.Errorf("sub %v, want %s", c["sub"], wi.Status.Sub)
			}
		})
	}
}

func TestWhoMayCreateTokens(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.create(t, namespace, "one", "aws", "a")
	for role, verbs := range map[string]map[string]int{
		"admin": {"GET": 200, "POST": 201},
		"edit":  {"GET": 200, "POST": 201},
		"view":  {"GET": 200, "POST": 403},
	} {
		t.Run(role, func(t *testing.T) {
			name := role + "-of-" + namespace
			need(shared.client(t).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{user(name)},
			}, metav1.CreateOptions{}))(t)
			config := shared.as(t, name)
			// The roles are aggregated by a controller: wait for it before anything is cached as denied.
			eventually(t, func() error {
				out, _, _ := shared.command(t, "", "kubectl", "auth", "can-i", "get", "workloadidentities.authentication.gardener.cloud", "-n", namespace, "--as", name)
				if strings.TrimSpace(out) != "yes" {
					return fmt.Errorf("can-i prints %q", out)
				}
				return nil
			})
			for method, code := range verbs {
				expect(t, do(t, config, method, identitiesPath(namespace), "application/json", identityJSON("by-"+role, "aws", "a")).is(code), method)
			}
			expect(t, do(t, config, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(403), "create a token")
			if out, _, _ := shared.command(t, "", "kubectl", "auth", "can-i", "use", "workloadidentities.authentication.gardener.cloud/one", "-n", namespace, "--as", name); strings.TrimSpace(out) != "no" {
				t.Errorf("can-i use prints %q, want no", out)
			}
		})
	}
}
