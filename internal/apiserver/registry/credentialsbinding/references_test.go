package credentialsbinding

import (
	"context"
	"errors"
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
		"an identity that does not exist":       {binding: binding(nil, ref("gone")), code: 422, want: `workloadIdentityRef: Not found: "shop/gone"`},
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
