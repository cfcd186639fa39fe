package tokenrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/contexts/contextstest"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/test/testkit"
)

// counted counts the reads of each identity and binding of a landscape.
type counted struct {
	*landscape
	mu    sync.Mutex
	reads map[string]int
	// reading is called before each read, if it is set.
	reading func()
	// static are bindings that refer to the Secret keys/static, whose data is refused with these errors.
	static            map[string]bool
	consents, reaches error
}

func (c *counted) Consents(context.Context, types.NamespacedName) error { return c.consents }

func (c *counted) Reaches(context.Context, *clusters.Cluster, types.NamespacedName, *v1alpha1.ContextObject) error {
	return c.reaches
}

func (c *counted) read(kind, namespace, name string) {
	if c.reading != nil {
		c.reading()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[kind+" "+namespace+"/"+name]++
}

func (c *counted) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	c.read("identity", request.NamespaceValue(ctx), name)
	return c.identities.Identity(ctx, name)
}

func (c *counted) Refers(ctx context.Context, binding, identity types.NamespacedName) (bool, error) {
	c.read("binding", binding.Namespace, binding.Name)
	return c.bindings.Refers(ctx, binding, identity)
}

func (c *counted) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	binding := types.NamespacedName{Namespace: request.NamespaceValue(ctx), Name: name}
	c.read("binding", binding.Namespace, name)
	if c.static[name] {
		return &v1alpha1.CredentialsBinding{SecretRef: &v1alpha1.CredentialsReference{Namespace: "keys", Name: "static"}}, nil
	}
	to, ok := c.bindings[binding]
	if !ok {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("credentialsbindings"), name)
	}
	return &v1alpha1.CredentialsBinding{WorkloadIdentityRef: &v1alpha1.CredentialsReference{Namespace: to.Namespace, Name: to.Name}}, nil
}

// reviewer returns the endpoint of a landscape, and what it reads. Users have the rights that are granted.
func (l *landscape) reviewer(t *testing.T, granted reviews) (*ReviewREST, *counted) {
	index, follower := clusters.New(&l.clusters), contexts.New(&l.kinds, l.client, contextstest.NoDeliveries{}, clock.RealClock{})
	go index.Run(t.Context())
	go follower.Run(t.Context())
	// Without them an object is reviewed, too, and its tokens are unknown.
	testkit.Eventually(t, "the clusters have been read", func() bool { _, err := index.Named("east"); return err == nil })
	tokens, _ := newREST(t, granted, testRing)
	c := &counted{landscape: l, reads: map[string]int{}}
	tokens.Identities, tokens.Bindings, tokens.Clusters, tokens.Objects = c, c, index, follower
	return NewReviewREST(tokens, Landscape{
		Bindings: c, Cluster: index.Named, Kind: follower.KindOf, Data: c,
		Deliveries: func(schema.GroupResource, types.NamespacedName, *clusters.Cluster) ([]*identityv1alpha1.ContextDelivery, error) {
			return nil, nil
		},
	}), c
}

// review has a user review the Shoot.
func (l *landscape) review(t *testing.T, r *ReviewREST, name string) (*identityv1alpha1.ContextReviewStatus, error) {
	asked := &identityv1alpha1.ContextReview{Spec: identityv1alpha1.ContextReviewSpec{ContextObject: identityv1alpha1.DeliveryContext{
		APIVersion: l.object.APIVersion, Kind: l.object.Kind, Namespace: l.object.Namespace, Name: l.object.Name, UID: l.object.UID,
	}}}
	got, err := r.Create(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}), asked, nil, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &got.(*identityv1alpha1.ContextReview).Status, nil
}

// reviewed is the answer to anna when all is known.
func (l *landscape) reviewed(t *testing.T, r *ReviewREST) *identityv1alpha1.ContextReviewStatus {
	t.Helper()
	var status *identityv1alpha1.ContextReviewStatus
	testkit.Eventually(t, "the object is reviewed", func() bool {
		var err error
		status, err = l.review(t, r, "anna")
		if err != nil && !apierrors.IsServiceUnavailable(err) && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return status
}

func all(authorizer.Attributes) (bool, error) { return true, nil }

// wide is a Shoot with more bindings, on more clusters, than are reviewed. The identities do not exist.
func (l *landscape) wide(t *testing.T) {
	var on, bindings []any
	for i := range maxReviewed + 1 {
		on, bindings = append(on, fmt.Sprintf("cluster-%d", i)), append(bindings, fmt.Sprintf("bound-%d", i))
		l.bindings[types.NamespacedName{Namespace: "fruit", Name: fmt.Sprintf("bound-%d", i)}] = types.NamespacedName{Namespace: "trees", Name: fmt.Sprintf("tree-%d", i)}
		l.clusters.list.Items = append(l.clusters.list.Items, *member(fmt.Sprintf("cluster-%d", i), fmt.Sprintf("agent-%d", i)))
	}
	l.update(t, shoot(on, nil, bindings))
}

// A review reads each identity and each binding at most once, however many callers' requests it checks, also those that are not there: such
// reads are of the storage.
func TestReviewReadsOnce(t *testing.T) {
	l := newLandscape()
	l.wide(t)
	r, c := l.reviewer(t, all)
	l.reviewed(t, r)
	// Of the identities that are reviewed two are lent: whether a binding of the Shoot refers to them is seen from all of these.
	if want := maxReviewed + (maxReviewed + 1); len(c.reads) != want {
		t.Errorf("%d identities and bindings are read, want %d", len(c.reads), want)
	}
	for name, times := range c.reads {
		if times != 1 {
			t.Errorf("%s is read %d times", name, times)
		}
	}
}

// A binding that refers to a Secret is refused no more than its data is. Users who may not get the Secret learn nothing of that.
func TestReviewOfStaticData(t *testing.T) {
	l := newLandscape()
	l.update(t, shoot([]any{"east", "gone"}, nil, []any{"infra"}))
	blind := false
	r, c := l.reviewer(t, func(a authorizer.Attributes) (bool, error) { return !blind || a.GetResource() != "secrets", nil })
	c.static = map[string]bool{"infra": true}
	forbidden, away := apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), "infra", errors.New("no consent")), unavailable.New("away")
	none := identityv1alpha1.ReviewedToken{Cluster: "gone", Code: 403, Refused: `workloadclusters.identity.credence.dev "gone" is forbidden: there is no such WorkloadCluster, so no agent requests tokens for it`}
	for name, test := range map[string]struct {
		blind             bool
		consents, reaches error
		problem, unknown  string
		tokens            []identityv1alpha1.ReviewedToken
	}{
		"delivered":              {tokens: []identityv1alpha1.ReviewedToken{{Cluster: "east"}, none}},
		"no right to the Secret": {blind: true, unknown: `User "anna" cannot get resource "secrets" in API group "" in the namespace "keys"`},
		"no consent":             {consents: forbidden, problem: forbidden.Error()},
		"the Secret is away":     {consents: away, unknown: "away"},
		"not for this cluster":   {reaches: forbidden, tokens: []identityv1alpha1.ReviewedToken{{Cluster: "east", Code: 403, Refused: forbidden.Error()}, none}},
		"the clusters are away":  {reaches: away, tokens: []identityv1alpha1.ReviewedToken{{Cluster: "east", Unknown: "away"}, none}},
	} {
		blind, c.consents, c.reaches = test.blind, test.consents, test.reaches
		infra := identityv1alpha1.NamespacedReference{Namespace: "fruit", Name: "infra"}
		want := []identityv1alpha1.ReviewedReference{{
			CredentialsBinding: &infra, Secret: &identityv1alpha1.NamespacedReference{Namespace: "keys", Name: "static"},
			Problem: test.problem, Unknown: test.unknown, Tokens: test.tokens,
		}}
		got := slices.DeleteFunc(l.reviewed(t, r).References, func(of identityv1alpha1.ReviewedReference) bool {
			return of.CredentialsBinding == nil || *of.CredentialsBinding != infra
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A user has few reviews worked on at a time; others are not held up.
func TestReviewsInFlight(t *testing.T) {
	l := newLandscape()
	r, c := l.reviewer(t, all)
	l.reviewed(t, r)
	const most = maxReviewsInFlight
	begun, goOn := make(chan struct{}, most), make(chan struct{})
	c.reading = func() {
		select {
		case <-goOn:
		default:
			begun <- struct{}{}
			<-goOn
		}
	}
	answers := make(chan error, most)
	for range most {
		go func() { _, err := l.review(t, r, "anna"); answers <- err }()
		<-begun
	}
	c.reading = nil
	_, err := l.review(t, r, "anna")
	if status := apierrors.APIStatus(nil); !apierrors.IsTooManyRequests(err) || !errors.As(err, &status) || status.Status().Details.RetryAfterSeconds == 0 {
		t.Errorf("one more than may be: %v, want 429", err)
	}
	testkit.Expect(t, testkit.Err(l.review(t, r, "ben")), "another user")
	close(goOn)
	for range most {
		testkit.Expect(t, <-answers)
	}
	testkit.Expect(t, testkit.Err(l.review(t, r, "anna")), "after the others")
}

// The owner of an object who changes it while it is reviewed learns nothing of related objects whose rights were not reviewed.
func TestReviewOfAChangedObject(t *testing.T) {
	l := newLandscape()
	l.kinds[0].Spec.Related[0].Of = "object.spec.bucket"
	in := func(bucket string) *unstructured.Unstructured {
		changed := shoot([]any{"east"}, []any{"one"}, nil)
		testkit.Must(t, unstructured.SetNestedField(changed.Object, bucket, "spec", "bucket"))
		return changed
	}
	l.update(t, in("bucket"))
	vault := bucket()
	vault.SetName("vault")
	testkit.Must(t, testkit.Err(l.client.Resource(bucketResource).Create(t.Context(), vault, metav1.CreateOptions{})))
	r, c := l.reviewer(t, func(a authorizer.Attributes) (bool, error) { return a.GetName() != "vault", nil })
	status := l.reviewed(t, r)
	if text := shown(t, status); strings.Count(text, `"backupBucket":{"name":"bucket"`) == 0 {
		t.Fatalf("without the claim of the related object: %s", text)
	}
	c.reading = func() {
		c.reading = nil
		l.update(t, in("vault"))
		testkit.Eventually(t, "the change is seen", func() bool {
			kind, err := r.landscape.Kind(shootResource.Group, "Shoot")
			if err != nil {
				return false
			}
			found, err := kind.Find("fruit", "banana")
			if err != nil {
				return false
			}
			claims, err := found.Claims()
			return err == nil && claims[1].Name == "vault"
		})
	}
	changed := shown(t, l.reviewed(t, r))
	if c.reading != nil {
		t.Fatal("the object was not changed")
	}
	if changed != shown(t, status) {
		t.Errorf("it is changed meanwhile: %s, want what was found first", changed)
	}
	if after := shown(t, l.reviewed(t, r)); strings.Contains(after, `"backupBucket"`) || strings.Contains(after, "vault") {
		t.Errorf("without the right: %s", after)
	}
}

// A related object is left out for a user who may not get it: its claim, what it lends, and all tokens if it is not clear which object it is.
func TestReviewOfLentReferences(t *testing.T) {
	own := []string{"fruit/one", "trees/one"}
	lent := []string{"fruit/one", "listed/one", "plants/one", "trees/one", "shrubs/one"}
	for name, c := range map[string]struct {
		before  func(*landscape)
		granted reviews
		// references are the identities, and claimed reports whether the tokens have the claim of the BackupBucket.
		references []string
		claimed    bool
		unknown    []string
	}{
		"with all rights": {granted: all, references: lent, claimed: true},
		"without the right to the one that lends": {
			granted: func(a authorizer.Attributes) (bool, error) { return a.GetName() != "bucket", nil }, references: own,
			unknown: []string{"the claim backupBucket: User", "the identities that are lent with the claim backupBucket: User"},
		},
		"without the right to one that lends nothing": {
			before:  func(l *landscape) { l.kinds[0].Spec.Related[0].Lends = false },
			granted: func(a authorizer.Attributes) (bool, error) { return a.GetName() != "bucket", nil }, references: own,
			unknown: []string{"the claim backupBucket: User"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape()
			if c.before != nil {
				c.before(l)
			}
			r, _ := l.reviewer(t, c.granted)
			status := l.reviewed(t, r)
			var references []string
			for _, reference := range status.References {
				references = append(references, reference.WorkloadIdentity.Namespace+"/"+reference.WorkloadIdentity.Name)
			}
			if !slices.Equal(references, c.references) {
				t.Errorf("references %q, want %q", references, c.references)
			}
			for _, token := range status.References[0].Tokens {
				if token.Claims == nil || strings.Contains(string(token.Claims.Raw), `"backupBucket":{"name":"bucket"`) != c.claimed {
					t.Errorf("token of cluster %q: %s %s", token.Cluster, shown(t, status), token.Refused)
				}
			}
			if !slices.EqualFunc(status.Unknown, c.unknown, strings.HasPrefix) {
				t.Errorf("unknown %q, want %q", status.Unknown, c.unknown)
			}
			if text := shown(t, status); !c.claimed && (strings.Contains(text, "uid-of-bucket") || strings.Contains(text, "plants") || strings.Contains(text, "fruit/lent")) {
				t.Errorf("it has what the user may not get: %s", text)
			}
		})
	}
}

// That there is no related object, a user does not learn without the right to all that could be, and no token is known.
func TestReviewOfAMissingRelation(t *testing.T) {
	l := newLandscape()
	l.kinds[0].Spec.Related[0].Key = "'another'"
	r, _ := l.reviewer(t, func(a authorizer.Attributes) (bool, error) {
		return a.GetResource() != bucketResource.Resource || a.GetName() != "", nil
	})
	status := l.reviewed(t, r)
	if len(status.References) == 0 {
		t.Fatal("no reference of the object itself")
	}
	for _, reference := range status.References {
		for _, token := range reference.Tokens {
			if token.Claims != nil || token.Refused != "" || !strings.Contains(token.Unknown, "cannot get resource \"backupbuckets\"") {
				t.Errorf("token %+v, want unknown", token)
			}
		}
	}
}

// A review reports which references and clusters of an object are left out.
func TestReviewIsBounded(t *testing.T) {
	l := newLandscape()
	l.wide(t)
	r, _ := l.reviewer(t, all)
	status := l.reviewed(t, r)
	if len(status.Clusters) != maxReviewed+1 || len(status.References) != maxReviewed {
		t.Errorf("%d clusters and %d references, want all %d and the first %d", len(status.Clusters), len(status.References), maxReviewed+1, maxReviewed)
	}
	for _, reference := range status.References {
		if len(reference.Tokens) != maxReviewed+1 {
			t.Errorf("%d tokens, want those of %d clusters and of the user", len(reference.Tokens), maxReviewed)
		}
	}
	// Three are lent.
	want := []string{"the object is on 33 clusters, of which the first 32 are reviewed", "the object has 36 references, of which the first 32 are reviewed"}
	if !slices.Equal(status.Unknown, want) {
		t.Errorf("unknown %q, want %q", status.Unknown, want)
	}
}

func shown(t *testing.T, status *identityv1alpha1.ContextReviewStatus) string {
	text := testkit.Need(json.Marshal(status))(t)
	return string(text)
}
