package credentialsbinding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// world has identities and rights, such as "use elsewhere/cart".
type world struct {
	identities map[string]*v1alpha1.WorkloadIdentity
	rights     []string
	outage     error
	deleted    map[string]bool // a moment ago
}

func (w world) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	if wi, ok := w.identities[request.NamespaceValue(ctx)+"/"+name]; ok {
		return wi, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name)
}

// Hold refuses as the storage does: the identity may have been deleted a moment ago.
func (w world) Hold(ctx context.Context, name string, _ bool) error {
	if w.deleted[request.NamespaceValue(ctx)+"/"+name] {
		return apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), name, errors.New("it is being deleted"))
	}
	return nil
}

func (w world) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(w.rights, a.GetVerb()+" "+a.GetNamespace()+"/"+a.GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", w.outage
}

func identity(kind, role string) *v1alpha1.WorkloadIdentity {
	wi := &v1alpha1.WorkloadIdentity{Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: kind}}}
	if role != "" {
		wi.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::` + role + `"}`)}
	}
	return wi
}

func TestReferences(t *testing.T) {
	deleted := identity("aws", "")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	identities := map[string]*v1alpha1.WorkloadIdentity{
		"shop/one": identity("aws", "112233445566:role/one"), "shop/two": identity("aws", "112233445566:role/two"),
		"shop/foreign": identity("aws", "998877665544:role/one"), "shop/bare": identity("aws", ""), "shop/invalid": identity("aws", "1:no-role"), "shop/deleted": deleted, "shop/gcp": identity("gcp", ""),
		"shop/just-deleted": identity("aws", ""),
		"elsewhere/one":     identity("aws", "112233445566:role/one"),
	}
	everything := []string{"get shop/static", "get shop/other", "use shop/one", "use shop/two", "use shop/foreign", "use shop/bare", "use shop/invalid", "use shop/deleted", "use shop/gcp", "use shop/gone", "use shop/just-deleted"}
	without := func(rights ...string) []string {
		return slices.DeleteFunc(slices.Clone(everything), func(right string) bool { return slices.Contains(rights, right) })
	}
	elsewhere := &v1alpha1.CredentialsReference{Namespace: "elsewhere", Name: "one"}
	for name, test := range map[string]struct {
		binding, old *v1alpha1.CredentialsBinding
		rights       []string
		outage       error
		code         int32
		want         string
	}{
		"a Secret":                              {binding: binding(ref("static"), nil)},
		"an identity":                           {binding: binding(nil, ref("one"))},
		"a Secret that may not be read":         {binding: binding(ref("static"), nil), rights: without("get shop/static"), code: 403, want: `secretRef: user "jane" cannot get resource "secrets" in API group "" in the namespace "shop"`},
		"an identity that may not be used":      {binding: binding(nil, ref("one")), rights: without("use shop/one"), code: 403, want: `workloadIdentityRef: user "jane" cannot use resource "workloadidentities"`},
		"an identity of another namespace":      {binding: binding(nil, elsewhere), code: 403, want: `in the namespace "elsewhere"`},
		"a Secret of another namespace":         {binding: binding(elsewhere, nil), code: 403, want: `cannot get resource "secrets" in API group "" in the namespace "elsewhere"`},
		"existence is not shown":                {binding: binding(nil, ref("gone")), rights: without("use shop/gone"), code: 403},
		"an identity that does not exist":       {binding: binding(nil, ref("gone"))},
		"an identity that is being deleted":     {binding: binding(nil, ref("deleted")), code: 422, want: "is being deleted"},
		"an identity deleted a moment ago":      {binding: binding(nil, ref("just-deleted")), code: 409, want: "it is being deleted"},
		"an identity of another provider":       {binding: binding(nil, ref("gcp")), code: 422, want: "is for gcp, and the binding for aws"},
		"an outage":                             {binding: binding(nil, ref("one")), rights: without("use shop/one"), outage: errors.New("away"), code: 503},
		"from a Secret to an identity":          {binding: binding(nil, ref("one")), old: binding(ref("static"), nil)},
		"and back":                              {binding: binding(ref("static"), nil), old: binding(nil, ref("one"))},
		"without a right to the old Secret":     {binding: binding(nil, ref("one")), old: binding(ref("static"), nil), rights: without("get shop/static"), code: 403, want: `the former secretRef: user "jane" cannot get`},
		"without a right to the old identity":   {binding: binding(ref("static"), nil), old: binding(nil, ref("one")), rights: without("use shop/one"), code: 403, want: "the former workloadIdentityRef"},
		"another Secret":                        {binding: binding(ref("other"), nil), old: binding(ref("static"), nil)},
		"another role":                          {binding: binding(nil, ref("two")), old: binding(nil, ref("one"))},
		"another account":                       {binding: binding(nil, ref("foreign")), old: binding(nil, ref("one")), code: 422, want: `is of another account than shop/one, to which the binding refers: spec.targetSystem.providerConfig.iamRoleARN is "arn:aws:iam::998877665544", and was "arn:aws:iam::112233445566"`},
		"an account that can be chosen later":   {binding: binding(nil, ref("bare")), old: binding(nil, ref("one")), code: 422, want: "is of another account"},
		"an account that cannot be read":        {binding: binding(nil, ref("foreign")), old: binding(nil, ref("invalid")), code: 422, want: "may be of another account than shop/invalid, to which the binding refers"},
		"to one that cannot be read":            {binding: binding(nil, ref("invalid")), old: binding(nil, ref("one")), code: 422, want: "is of another account than shop/one"},
		"an account that was not known":         {binding: binding(nil, ref("one")), old: binding(nil, ref("bare"))},
		"the old identity does not exist":       {binding: binding(nil, ref("foreign")), old: binding(nil, ref("gone"))},
		"references that stay need no rights":   {binding: binding(nil, ref("deleted")), old: binding(nil, ref("deleted")), rights: []string{}},
		"a namespace that is left out is equal": {binding: binding(ref("static"), nil), old: binding(&v1alpha1.CredentialsReference{Name: "static", Namespace: "shop"}, nil), rights: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.rights == nil {
				test.rights = everything
			}
			w := world{identities, test.rights, test.outage, map[string]bool{"shop/just-deleted": true}}
			ctx := request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: "jane"})
			err := references{w, w}.check(ctx, test.binding, test.old, false)
			if test.code == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %d with %q", err, test.code, test.want)
			}
		})
	}
}

// Another identity of a binding must be of the same account, for each provider that has accounts: an update passes the checks of the strategy, then those
// of references. An account that is not known before, as there is no providerConfig, may become any; it can't be unknown after.
func TestAccountsOfProviders(t *testing.T) {
	const client, tenant, subscription = `"clientID":"1f2e3d4c-5b6a-4798-8897-a6b5c4d3e2f1"`, `,"tenantID":"aaaaaaaa-0000-4000-8000-000000000001"`, `,"subscriptionID":"bbbbbbbb-0000-4000-8000-000000000001"`
	const pool = `"workloadIdentityPoolProvider":"projects/123456789/locations/global/workloadIdentityPools/pool/providers/`
	for name, c := range map[string]struct {
		provider, first, same, other string
		// field has the account, of the first and of the other one.
		field, ofFirst, ofOther string
	}{
		"AWS": {"aws", `"iamRoleARN":"arn:aws:iam::112233445566:role/one"`, `"iamRoleARN":"arn:aws:iam::112233445566:role/team/two","region":"eu-central-1"`, `"iamRoleARN":"arn:aws:iam::998877665544:role/one"`,
			"iamRoleARN", "arn:aws:iam::112233445566", "arn:aws:iam::998877665544"},
		"a store": {"aws", `"iamRoleARN":"arn:minio:iam:::role/x","region":"r","endpoint":"https://one.example"`, `"iamRoleARN":"arn:minio:iam:::role/y","region":"r","endpoint":"https://one.example"`, `"iamRoleARN":"arn:minio:iam:::role/x","region":"r","endpoint":"https://two.example"`,
			"endpoint", "https://one.example", "https://two.example"},
		"a cluster": {"kubernetes", `"server":"https://one.example"`, `"server":"https://one.example","namespace":"x"`, `"server":"https://two.example"`,
			"server", "https://one.example", "https://two.example"},
		"a partition of AWS": {"aws", `"iamRoleARN":"arn:aws:iam::112233445566:role/one"`, `"iamRoleARN":"arn:aws:iam::112233445566:role/two"`, `"iamRoleARN":"arn:aws-cn:iam::112233445566:role/one"`,
			"iamRoleARN", "arn:aws:iam::112233445566", "arn:aws-cn:iam::112233445566"},
		"a tenant of Azure": {"azure", client + tenant + subscription, strings.Replace(client, "1f", "2f", 1) + strings.ReplaceAll(tenant, "aaaaaaaa", "AAAAAAAA") + subscription, client + strings.Replace(tenant, "1\"", "2\"", 1) + subscription,
			"tenantID", "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"},
		"a subscription of Azure": {"azure", client + tenant + subscription, client + tenant + strings.ReplaceAll(subscription, "bbbbbbbb", "BBBBBBBB"), client + tenant + strings.Replace(subscription, "1\"", "2\"", 1),
			"subscriptionID", "bbbbbbbb-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"},
		"Google Cloud": {"gcp", pool + `first","projectID":"my-project"`, pool + `second","projectID":"my-project","serviceAccount":"backup@my-project.iam.gserviceaccount.com"`, pool + `first","projectID":"other-project"`,
			"projectID", "my-project", "other-project"},
		"Alibaba Cloud": {"alicloud", `"roleARN":"acs:ram::1122334455667788:role/one","oidcProviderARN":"acs:ram::1122334455667788:oidc-provider/one"`, `"roleARN":"acs:ram::1122334455667788:role/two","oidcProviderARN":"acs:ram::1122334455667788:oidc-provider/two"`,
			`"roleARN":"acs:ram::8877665544332211:role/one","oidcProviderARN":"acs:ram::8877665544332211:oidc-provider/one"`,
			"roleARN", "acs:ram::1122334455667788", "acs:ram::8877665544332211"},
	} {
		t.Run(name, func(t *testing.T) {
			identityOf := func(fields string) *v1alpha1.WorkloadIdentity {
				wi := identity(c.provider, "")
				if fields != "" {
					wi.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"` + c.provider + `.authentication.gardener.cloud/v1alpha1","kind":"Config",` + fields + `}`)}
				}
				return wi
			}
			update := func(from, to string) error {
				w := world{identities: map[string]*v1alpha1.WorkloadIdentity{"shop/from": identityOf(from), "shop/to": identityOf(to)}, rights: []string{"use shop/from", "use shop/to"}}
				old, updated := binding(nil, ref("from")), binding(nil, ref("to"))
				old.Provider.Type, updated.Provider.Type = c.provider, c.provider
				ctx := request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: "jane"})
				strategy{}.PrepareForUpdate(ctx, updated, old)
				if errs := (strategy{}).ValidateUpdate(ctx, updated, old); len(errs) > 0 {
					return errs.ToAggregate()
				}
				return references{w, w}.check(ctx, updated, old, false)
			}
			for _, pass := range [][2]string{{c.first, c.same}, {c.same, c.first}, {c.other, c.other}, {"", c.first}, {"", ""}} {
				if err := update(pass[0], pass[1]); err != nil {
					t.Errorf("from %q to %q: %v", pass[0], pass[1], err)
				}
			}
			for _, refused := range []struct{ from, to, was, is string }{{c.first, c.other, c.ofFirst, c.ofOther}, {c.other, c.first, c.ofOther, c.ofFirst}, {c.same, c.other, c.ofFirst, c.ofOther}} {
				want := fmt.Sprintf(`workloadIdentityRef: Invalid value: "shop/to": is of another account than shop/from, to which the binding refers: spec.targetSystem.providerConfig.%s is %q, and was %q; make another binding`, c.field, refused.is, refused.was)
				if err := update(refused.from, refused.to); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
					t.Errorf("from %q to %q: %v\nwant %s", refused.from, refused.to, err, want)
				}
			}
			if err := update(c.first, ""); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `is "", and was`) {
				t.Errorf("to one without an account: %v", err)
			}
		})
	}
}
