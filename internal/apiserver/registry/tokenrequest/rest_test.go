package tokenrequest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
)

const testIssuer = identity.Issuer("https://issuer.example")

// identities is a namespace "ns" with one identity, "one", of a type of target system; without one, aws.
type identities struct{ targetType string }

func (i identities) Identity(_ context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	if name != "one" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name)
	}
	targetType := cmp.Or(i.targetType, "aws")
	return &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-one"},
		Spec:       v1alpha1.WorkloadIdentitySpec{Audiences: []string{"a"}, TargetSystem: v1alpha1.TargetSystem{Type: targetType}},
		Status:     v1alpha1.WorkloadIdentityStatus{Issuer: string(testIssuer)},
	}, nil
}

// bindings has one that refers to each identity, elsewhere/bound, and one that cannot be read.
type bindings struct{}

func (bindings) Refers(_ context.Context, binding, _ types.NamespacedName) (bool, error) {
	if binding.Name == "unreadable" {
		return false, apierrors.NewTooManyRequestsError("the storage is busy")
	}
	return binding == types.NamespacedName{Namespace: "elsewhere", Name: "bound"}, nil
}

// reviews is an authorizer that allows what its function does.
type reviews func(authorizer.Attributes) (bool, error)

func (r reviews) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	allowed, err := r(a)
	if allowed {
		return authorizer.DecisionAllow, "", err
	}
	return authorizer.DecisionNoOpinion, "", err
}

// noUsernames has no username of any account.
type noUsernames struct{}

func (noUsernames) Username(context.Context, string, string) (string, error) { return "", nil }

// noClusters has no cluster of any user.
type noClusters struct{}

func (noClusters) Of(string) (*identityv1alpha1.WorkloadCluster, error) { return nil, nil }

// noObjects has no ContextKind.
type noObjects struct{}

func (noObjects) Kind(string, string) (*contexts.Kind, error) { return nil, nil }
func (noObjects) Supported() []string                         { return nil }
func (noObjects) ClusterUID(string) (types.UID, error)        { return "", nil }

type counter struct {
	issued  int
	signed  int
	refused []string
	// toPods has the expiry of the last token that a pod got for itself, by the uid of the identity.
	toPods map[types.UID]time.Time
}

func (c *counter) Issued(identity.Algorithm)                { c.issued++ }
func (c *counter) Signed(identity.Algorithm, time.Duration) { c.signed++ }
func (c *counter) Refused(reason string)                    { c.refused = append(c.refused, reason) }

var testRing = sync.OnceValue(func() keys.Ring {
	ring, err := keys.Bootstrap(keys.NewPrivate, time.Now())
	if err != nil {
		panic(err)
	}
	return ring
})

func newREST(t testing.TB, reviews reviews, ring func() keys.Ring) (*REST, *counter) {
	t.Helper()
	tokens := testkit.Need(issuer.New(issuer.Config{Issuer: testIssuer, GardenID: "garden", Ring: func() (keys.Ring, time.Time) { return ring(), time.Now() }, Clock: time.Now, Random: rand.Reader}))(t)
	lifetimes := testkit.Need(identity.Lifetimes{}.Complete())(t)
	client := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "account", UID: "uid-of-account"}})
	c := &counter{toPods: map[types.UID]time.Time{}}
	return NewREST(Config{
		Identities: identities{}, Bindings: bindings{}, Clock: clock.RealClock{}, Tokens: tokens, Issuer: testIssuer, Lifetimes: lifetimes,
		Authorizer: reviews, Clusters: noClusters{}, Contexts: []ContextKind{ServiceAccounts(client.CoreV1(), noUsernames{})}, Objects: noObjects{}, Recorder: c,
	}), c
}

func callerContext(t testing.TB) context.Context {
	ctx := request.WithNamespace(t.Context(), "ns")
	return request.WithUser(ctx, &user.DefaultInfo{Name: "caller", Groups: []string{user.AllAuthenticated}})
}

func withContext() *Object {
	return &Object{Spec: v1alpha1.TokenRequestSpec{ContextObject: &v1alpha1.ContextObject{
		APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "account", UID: "uid-of-account",
	}}}
}

// An access review that cannot be made is an outage: a caller who takes it for a denial would give up, or be let pass by
// a component that treats denials as final.
func TestOutageOfReviewsIsNoDenial(t *testing.T) {
	outage := errors.New("connection refused")
	for verb, reviews := range map[string]reviews{
		"get": func(authorizer.Attributes) (bool, error) { return false, outage },
		"use": func(a authorizer.Attributes) (bool, error) {
			if a.GetVerb() == "use" {
				return false, outage
			}
			return true, nil
		},
		"assert": func(a authorizer.Attributes) (bool, error) {
			if a.GetVerb() == "assert" {
				return false, outage
			}
			return true, nil
		},
		"impersonate": func(a authorizer.Attributes) (bool, error) {
			switch a.GetVerb() {
			case "assert":
				return false, nil
			case "impersonate":
				return false, outage
			}
			return true, nil
		},
	} {
		rest, recorder := newREST(t, reviews, testRing)
		_, err := rest.Create(callerContext(t), "one", withContext(), nil, &metav1.CreateOptions{})
		if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("outage of the review of %s: %v, want 503", verb, err)
		}
		if recorder.issued != 0 || len(recorder.refused) != 1 || recorder.refused[0] != string(metav1.StatusReasonServiceUnavailable) {
			t.Errorf("recorded %+v", recorder)
		}
	}
}

// The reviews are what the documents promise: the caller's own rights to the account and to the identity, and the verb use
// on this identity for the account with its three groups.
func TestReviews(t *testing.T) {
	const account = "system:serviceaccount:ns:account"
	get, impersonate := "get serviceaccounts ns/account", "impersonate serviceaccounts ns/account"
	assert, use := "assert workloadidentities.authentication.gardener.cloud ns/one", "use workloadidentities.authentication.gardener.cloud ns/one"
	caller := &user.DefaultInfo{Name: "caller"}
	for name, test := range map[string]struct {
		caller  *user.DefaultInfo
		allowed []string
		want    []string // reviews, in their order
		code    int32
	}{
		"agent":            {caller, []string{get, assert, use}, []string{get, assert, use}, 0},
		"impersonator":     {caller, []string{get, impersonate, use}, []string{get, assert, impersonate, use}, 0},
		"neither":          {caller, []string{get, use}, []string{get, assert, impersonate}, http.StatusForbidden},
		"the account":      {&user.DefaultInfo{Name: account, UID: "uid-of-account"}, []string{get, use}, []string{get, use}, 0},
		"without a uid":    {&user.DefaultInfo{Name: account}, []string{get, use}, []string{get, use}, 0},
		"a former account": {&user.DefaultInfo{Name: account, UID: "uid-of-former"}, []string{get, use}, []string{get, assert, impersonate}, http.StatusForbidden},
		"another account":  {&user.DefaultInfo{Name: "system:serviceaccount:ns:another", UID: "uid-of-account"}, []string{get, use}, []string{get, assert, impersonate}, http.StatusForbidden},
	} {
		var got []string
		rest, _ := newREST(t, func(a authorizer.Attributes) (bool, error) {
			resource := a.GetResource()
			if a.GetAPIGroup() != "" {
				resource += "." + a.GetAPIGroup()
			}
			if a.GetSubresource() != "" {
				resource += "/" + a.GetSubresource()
			}
			review := a.GetVerb() + " " + resource + " " + a.GetNamespace() + "/" + a.GetName()
			got = append(got, review)
			who := a.GetUser()
			if a.GetVerb() != "use" {
				if who != test.caller {
					t.Errorf("%s: %s of %+v", name, review, who)
				}
			} else if who.GetName() != account || who.GetUID() != "uid-of-account" ||
				strings.Join(who.GetGroups(), " ") != "system:serviceaccounts system:serviceaccounts:ns" {
				t.Errorf("%s: %s of %+v", name, review, who)
			}
			return slices.Contains(test.allowed, review), nil
		}, testRing)
		_, err := rest.Create(request.WithUser(callerContext(t), test.caller), "one", withContext(), nil, &metav1.CreateOptions{})
		var status apierrors.APIStatus
		if test.code == 0 && err != nil || test.code != 0 && (!errors.As(err, &status) || status.Status().Code != test.code) {
			t.Errorf("%s: %v, want code %d", name, err, test.code)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: reviews %q, want %q", name, got, test.want)
		}
	}
}

func TestNoSigningKeyIs503(t *testing.T) {
	rest, _ := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, func() keys.Ring { return keys.Ring{} })
	_, err := rest.Create(callerContext(t), "one", &Object{}, nil, &metav1.CreateOptions{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusServiceUnavailable || status.Status().Details.RetryAfterSeconds == 0 {
		t.Errorf("without a key: %v, want 503 with a time to retry", err)
	}
}

func TestIdentityOfAnotherIssuer(t *testing.T) {
	rest, _ := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, testRing)
	rest.Issuer = "https://another.example"
	if _, err := rest.Create(callerContext(t), "one", &Object{}, nil, &metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "https://issuer.example") {
		t.Errorf("identity created under another issuer: %v, want a conflict that names it", err)
	}
}

func TestAdmissionSeesNoTokenAndCanRefuse(t *testing.T) {
	rest, recorder := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, testRing)
	refusal := apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "one", errors.New("by admission"))
	_, err := rest.Create(callerContext(t), "one", &Object{Status: v1alpha1.TokenRequestStatus{Token: "forged"}}, func(_ context.Context, obj runtime.Object) error {
		if tr := obj.(*Object); tr.Metadata.Name != "one" || tr.Metadata.Namespace != "ns" || tr.Status.Token != "" {
			t.Errorf("admission sees %+v", tr)
		}
		return refusal
	}, &metav1.CreateOptions{})
	if !errors.Is(err, refusal) || recorder.issued != 0 {
		t.Errorf("refused by admission: %v, %d issued", err, recorder.issued)
	}
}

// recorded are the warnings of a request.
type recorded []string

func (r *recorded) AddWarning(_, text string) { *r = append(*r, text) }

func TestLifetimeThatTheTargetAccepts(t *testing.T) {
	const hour = time.Hour
	for _, test := range []struct {
		targetType      string
		requested, want time.Duration
		max, byDefault  time.Duration
		warning         string
	}{
		{"aws", 48 * hour, 48 * hour, 0, 0, ""},
		{"azure", 25 * hour, 25 * hour, 0, 0, ""},
		{"azure", 26 * hour, 25 * hour, 0, 0, "requested duration of 26h0m0s shortened to 25h0m0s, the longest that azure accepts"},
		{"azure", 72 * hour, 25 * hour, 0, 0, "requested duration of 72h0m0s shortened to 25h0m0s, the longest that azure accepts"},
		{"azure", 72 * hour, 20 * hour, 20 * hour, 0, "requested duration of 72h0m0s shortened to 20h0m0s"},
		{"gcp", 48 * hour, 48*hour - time.Second, 0, 0, "requested duration of 48h0m0s shortened to 47h59m59s, the longest that gcp accepts"},
		{"alicloud", 13 * hour, 12 * hour, 0, 0, "requested duration of 13h0m0s shortened to 12h0m0s, the longest that alicloud accepts"},
		{"alicloud", 0, 12 * hour, 0, 14 * hour, "requested duration of 14h0m0s shortened to 12h0m0s, the longest that alicloud accepts"},
		{"alicloud", 0, hour, 0, 0, ""},
		{"unheard-of", 48 * hour, 48 * hour, 0, 0, ""},
	} {
		lifetimes, err := identity.Lifetimes{Max: test.max, Default: test.byDefault}.Complete()
		testkit.Must(t, err)
		now := time.Now().Truncate(time.Second)
		tokens, err := issuer.New(issuer.Config{
			Issuer: testIssuer, GardenID: "garden", Lifetimes: lifetimes, Random: rand.Reader,
			Ring: func() (keys.Ring, time.Time) { return testRing(), now }, Clock: func() time.Time { return now },
		})
		testkit.Must(t, err)
		rest, _ := newREST(t, func(authorizer.Attributes) (bool, error) { return true, nil }, testRing)
		rest.Identities, rest.Tokens, rest.Lifetimes = identities{test.targetType}, tokens, lifetimes
		request := &Object{}
		if test.requested != 0 {
			request.Spec.Duration = &metav1.Duration{Duration: test.requested}
		}
		var warnings recorded
		out, err := rest.Create(warning.WithWarningRecorder(callerContext(t), &warnings), "one", request, nil, &metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s, %s: %v", test.targetType, test.requested, err)
			continue
		}
		if got := out.(*Object).Status.ExpirationTimestamp.Sub(now); got != test.want {
			t.Errorf("%s, %s: a token for %s, want %s", test.targetType, test.requested, got, test.want)
		}
		var want recorded
		if test.warning != "" {
			want = recorded{test.warning}
		}
		if !slices.Equal(warnings, want) {
			t.Errorf("%s, %s: warnings %q, want %q", test.targetType, test.requested, warnings, want)
		}
	}
}
