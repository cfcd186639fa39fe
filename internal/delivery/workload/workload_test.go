package workload

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, accounts.AddToScheme} {
		testkit.Must(t, add(scheme))
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// A profile that lists identities replaces the annotation, and an account with both has none.
func TestIdentities(t *testing.T) {
	listing := func(names ...string) *accounts.ServiceAccountProfile {
		p := &accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		p.Spec.WorkloadIdentities = names
		return p
	}
	for name, test := range map[string]struct {
		annotation string
		profile    *accounts.ServiceAccountProfile
		want       string
		invalid    bool
	}{
		"annotation":                    {annotation: "banana, cherry", want: "banana cherry"},
		"neither":                       {},
		"empty name":                    {annotation: "banana,,", invalid: true},
		"profile":                       {profile: listing("fig"), want: "fig"},
		"profile without a list":        {annotation: "banana", profile: listing(), want: "banana"},
		"profile with an empty list":    {profile: listing([]string{}...)},
		"both":                          {annotation: "banana", profile: listing("fig"), invalid: true},
		"profile and spaces":            {annotation: " ", profile: listing("fig"), want: "fig"},
		"profile of the same, and both": {annotation: "fig", profile: listing("fig"), invalid: true},
	} {
		var objects []client.Object
		if test.profile != nil {
			objects = append(objects, test.profile)
		}
		account := NewAccount()
		account.Namespace, account.Name, account.Annotations = "ns", "web", map[string]string{v1alpha1.AnnotationAccountIdentities: test.annotation}
		got, err := Identities(t.Context(), reader(t, objects...), account)
		if strings.Join(got, " ") != test.want || errors.Is(err, ErrList) != test.invalid || (err != nil) != test.invalid {
			t.Errorf("%s: %q, %v, want %q, invalid %t", name, got, err, test.want, test.invalid)
		}
		if lists := test.profile != nil && Lists(test.profile); lists != (test.profile != nil && test.profile.Spec.WorkloadIdentities != nil) {
			t.Errorf("%s: the profile lists identities: %t", name, lists)
		}
	}
}

// A namespace has what its labels say, and nothing while it is deleted or unknown.
func TestLabelsOfANamespace(t *testing.T) {
	on := v1alpha1.NamespaceEnabled
	for name, test := range map[string]struct {
		labels                   map[string]string
		byDefault                string
		deleted, missing         bool
		enabled, delivers, store bool
	}{
		"no label":         {store: true},
		"identities":       {labels: map[string]string{v1alpha1.LabelNamespaceIdentities: on}, enabled: true, store: true},
		"contexts":         {labels: map[string]string{v1alpha1.LabelNamespaceContexts: on}, delivers: true, store: true},
		"another value":    {labels: map[string]string{v1alpha1.LabelNamespaceIdentities: "true", v1alpha1.LabelNamespaceContexts: "true"}, store: true},
		"deleted":          {labels: map[string]string{v1alpha1.LabelNamespaceIdentities: on, v1alpha1.LabelNamespaceContexts: on}, deleted: true, store: true},
		"missing":          {missing: true},
		"volumes":          {labels: map[string]string{v1alpha1.LabelNamespaceDelivery: v1alpha1.DeliveryCSI}},
		"volumes, default": {byDefault: v1alpha1.DeliveryCSI},
		"chosen Secrets":   {byDefault: v1alpha1.DeliveryCSI, labels: map[string]string{v1alpha1.LabelNamespaceDelivery: v1alpha1.DeliverySecret}, store: true},
		"unknown choice":   {labels: map[string]string{v1alpha1.LabelNamespaceDelivery: "vault"}},
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: test.labels}}
		if test.deleted {
			namespace.DeletionTimestamp, namespace.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"kubernetes"}
		}
		if test.missing {
			namespace.Name = "other"
		}
		r := reader(t, namespace)
		enabled, err1 := Enabled(t.Context(), r, "ns")
		delivers, err2 := Delivers(t.Context(), r, "ns")
		stores, err3 := Stores(t.Context(), r, "ns", test.byDefault)
		if err := errors.Join(err1, err2, err3); err != nil || enabled != test.enabled || delivers != test.delivers || stores != test.store {
			t.Errorf("%s: enabled %t, delivers %t, stores %t, %v", name, enabled, delivers, stores, err)
		}
	}
}

func TestAccountOfASecret(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: "web", UID: "u"}
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"its account":   {[]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p"}, owner}, true},
		"another group": {[]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "ServiceAccount", Name: "web", UID: "u"}}, false},
		"no owner":      {nil, false},
	} {
		key, uid, ok := AccountOf(&metav1.ObjectMeta{Namespace: "ns", OwnerReferences: test.owners})
		if ok != test.want || ok && (key != types.NamespacedName{Namespace: "ns", Name: "web"} || uid != "u") {
			t.Errorf("%s: %s %s, %t", name, key, uid, ok)
		}
	}
}

// answers are those of an authorizer: the users whom it allows; an empty map is an outage.
type answers map[string]bool

func (a answers) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if len(a) == 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, errors.New("no authorizer")
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: a[spec.User+" "+spec.ResourceAttributes.Resource]}, nil
}

// The account that is the context is reviewed, or else the user who labeled the Secret. An outage is an error, and not a denial.
func TestDenied(t *testing.T) {
	identity := types.NamespacedName{Namespace: "ns", Name: "banana"}
	account := tokensecret.Request{Identity: identity, Context: &v1alpha1.ContextObject{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "web", UID: "u"}}
	user := tokensecret.Request{Identity: identity}
	binding := tokensecret.Request{Identity: identity, Binding: types.NamespacedName{Namespace: "ns", Name: "infra"}}
	requested := testkit.Need(tokensecret.FormatRequester(authority.Subject{Name: "jane"}))(t)
	for name, test := range map[string]struct {
		request     tokensecret.Request
		annotations map[string]string
		allowed     answers
		denied      string // part of the message; empty: not denied
		fails       bool
	}{
		"account":               {request: account, allowed: answers{"system:serviceaccount:ns:web workloadidentities": true}},
		"account, denied":       {request: account, allowed: answers{"jane workloadidentities": true}, annotations: requested, denied: "service account ns/web may not use the WorkloadIdentity ns/banana"},
		"account, outage":       {request: account, fails: true},
		"user":                  {request: user, annotations: requested, allowed: answers{"jane workloadidentities": true}},
		"user, denied":          {request: user, annotations: requested, allowed: answers{"jane credentialsbindings": true}, denied: "jane, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity ns/banana"},
		"user, outage":          {request: user, annotations: requested, fails: true},
		"user, not known":       {request: user},
		"user of a binding":     {request: binding, annotations: requested, allowed: answers{"jane credentialsbindings": true}},
		"binding, and identity": {request: binding, annotations: requested, allowed: answers{"jane workloadidentities": true}, denied: "CredentialsBinding ns/infra"},
	} {
		denied, err := Denied(t.Context(), test.allowed, &metav1.ObjectMeta{Namespace: "ns", Name: "s", Annotations: test.annotations}, test.request)
		if (err != nil) != test.fails || (denied != "") != (test.denied != "") || !strings.Contains(denied, test.denied) {
			t.Errorf("%s: %q, %v, want %q", name, denied, err, test.denied)
		}
	}
}
