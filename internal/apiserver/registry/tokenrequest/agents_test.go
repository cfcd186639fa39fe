package tokenrequest

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/contexts/contextstest"
	"github.com/credence-id/credence/test/testkit"
)

const eastAgent = "system:serviceaccount:workload-clusters:east-agent"

var (
	shootResource  = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}
	bucketResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "backupbuckets"}
)

// clusterStorage is a storage of the server, with the events of a test.
type clusterStorage struct {
	list   identityv1alpha1.WorkloadClusterList
	events *watch.FakeWatcher
}

func (s *clusterStorage) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return s.list.DeepCopy(), nil
}

func (s *clusterStorage) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

// boundTo has the identity that each binding refers to.
type boundTo map[types.NamespacedName]types.NamespacedName

func (r boundTo) Refers(_ context.Context, binding, identity types.NamespacedName) (bool, error) {
	return r[binding] == identity, nil
}

// everywhere has the identity "one" in each namespace but "empty".
type everywhere struct{ deleted bool }

func (e everywhere) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	namespace := request.NamespaceValue(ctx)
	wi, err := identities{}.Identity(ctx, name)
	if err != nil || namespace == "empty" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name)
	}
	wi.Namespace = namespace
	if e.deleted {
		wi, err = deleted{finalizers: []string{v1alpha1.FinalizerBindings}}.Identity(ctx, name)
		wi.Namespace = namespace
	}
	return wi, err
}

// landscape is two clusters, east and west, a Shoot on east that uses fruit/one directly, and trees/one by the binding fruit/bound, and a
// BackupBucket on east that uses listed/one and plants/one directly, and shrubs/one by the binding fruit/lent, and lends them to the Shoot.
type landscape struct {
	clusters   clusterStorage
	kinds      contextstest.Kinds
	cold       bool // the WorkloadClusters are not read
	coldKinds  bool // the ContextKinds are not read
	client     *fake.FakeDynamicClient
	bindings   boundTo
	identities everywhere

	// caller and what it requests.
	caller    user.DefaultInfo
	namespace string
	object    *v1alpha1.ContextObject
	binding   string
}

func member(name string, users ...string) *identityv1alpha1.WorkloadCluster {
	return &identityv1alpha1.WorkloadCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1"},
		Spec: identityv1alpha1.WorkloadClusterSpec{Users: users, Identities: identityv1alpha1.WorkloadClusterIdentities{
			Namespaces: []string{"listed"}, FromContexts: true,
		}},
	}
}

func shoot(on []any, identities, bindings []any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "spec": map[string]any{"on": on, "identities": identities, "bindings": bindings},
	}}
	object.SetNamespace("fruit")
	object.SetName("banana")
	object.SetUID("uid-of-banana")
	return object
}

func bucket() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupBucket",
		"spec": map[string]any{"on": []any{"east"}, "identities": []any{"listed/one", "plants/one"}, "bindings": []any{"fruit/lent"}},
	}}
	object.SetName("bucket")
	object.SetUID("uid-of-bucket")
	return object
}

func newLandscape() *landscape {
	references := []identityv1alpha1.ContextReference{{Name: "direct", WorkloadIdentities: "object.spec.identities"}, {Name: "bound", CredentialsBindings: "object.spec.bindings"}}
	return &landscape{
		clusters: clusterStorage{
			list:   identityv1alpha1.WorkloadClusterList{Items: []identityv1alpha1.WorkloadCluster{*member("east", eastAgent), *member("west", "west-agent")}},
			events: watch.NewFake(),
		},
		kinds: contextstest.Kinds{{
			ObjectMeta: metav1.ObjectMeta{Name: "shoots.core.gardener.cloud", ResourceVersion: "1"},
			Spec: identityv1alpha1.ContextKindSpec{
				Object: identityv1alpha1.ContextResource{Group: shootResource.Group, Version: shootResource.Version, Resource: shootResource.Resource, Kind: "Shoot"},
				Claim:  "shoot", Clusters: "object.spec.on", References: references,
				Related: []identityv1alpha1.RelatedObject{{Claim: "backupBucket", Resource: bucketResource.Resource, Key: "candidate.metadata.name", Of: "'bucket'", Lends: true}},
			},
		}, {
			ObjectMeta: metav1.ObjectMeta{Name: "backupbuckets.core.gardener.cloud", ResourceVersion: "1"},
			Spec: identityv1alpha1.ContextKindSpec{
				Object: identityv1alpha1.ContextResource{Group: bucketResource.Group, Version: bucketResource.Version, Resource: bucketResource.Resource, Kind: "BackupBucket", Scope: "Cluster"},
				Claim:  "backupBucket", Clusters: "object.spec.on", References: references,
			},
		}},
		client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{shootResource: "ShootList", bucketResource: "BackupBucketList"},
			shoot([]any{"east"}, []any{"one"}, []any{"bound"}), bucket()),
		bindings: boundTo{
			{Namespace: "fruit", Name: "bound"}: {Namespace: "trees", Name: "one"}, {Namespace: "fruit", Name: "lent"}: {Namespace: "shrubs", Name: "one"},
		},
		caller:    user.DefaultInfo{Name: eastAgent, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:workload-clusters", user.AllAuthenticated}},
		namespace: "fruit",
		object:    &v1alpha1.ContextObject{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: "fruit", Name: "banana", UID: "uid-of-banana"},
	}
}

// plain has the caller request a token without a context.
func (l *landscape) plain(namespace string) { l.namespace, l.object = namespace, nil }

func (l *landscape) update(t *testing.T, changed *unstructured.Unstructured) {
	testkit.Must(t, testkit.Err(l.client.Resource(shootResource).Namespace("fruit").Update(t.Context(), changed, metav1.UpdateOptions{})))
}

// webhook has the account of the webhook request a token.
func (l *landscape) webhook() {
	l.caller.Name = "system:serviceaccount:workload-clusters:east-webhook"
	l.clusters.list.Items[0].Spec.Users = append(l.clusters.list.Items[0].Spec.Users, l.caller.Name)
}

// inBucket has the caller request a token with the BackupBucket as context.
func (l *landscape) inBucket(namespace string) {
	l.namespace = namespace
	l.object = &v1alpha1.ContextObject{APIVersion: "core.gardener.cloud/v1beta1", Kind: "BackupBucket", Name: "bucket", UID: "uid-of-bucket"}
}

// row is a row of the document.
type row struct {
	// before changes the landscape before the server starts, and later when the caller has got a token.
	before func(*landscape)
	later  func(*testing.T, *landscape)
	// words are in the message.
	words string
}

var agentRows = map[string]row{
	"the account is in no WorkloadCluster":                                                  {before: func(l *landscape) { l.caller.Name += "x"; l.plain("listed") }, words: "is in no WorkloadCluster"},
	"the account is in no WorkloadCluster, and names an object":                             {before: func(l *landscape) { l.caller.Name += "x" }, words: "is in no WorkloadCluster"},
	"the account of the cluster's webhook, which was a user of clusters that joined before": {before: func(l *landscape) { l.webhook(); l.plain("listed") }, words: "needs no tokens"},
	"the account of the cluster's webhook, and it names an object":                          {before: (*landscape).webhook, words: "needs no tokens"},
	"an impersonator has its name without the group":                                        {before: func(l *landscape) { l.caller = user.DefaultInfo{Name: eastAgent}; l.plain("listed") }},
	"an impersonator has the group with another name":                                       {before: func(l *landscape) { l.caller.Name = "anna"; l.plain("listed") }, words: "is in no WorkloadCluster"},
	"the account is in two":                                                                 {before: func(l *landscape) { l.clusters.list.Items[1].Spec.Users = []string{eastAgent} }, words: "several workload clusters"},
	"a second WorkloadCluster lists the account":                                            {later: func(_ *testing.T, l *landscape) { l.clusters.events.Modify(member("west", eastAgent)) }, words: "several workload clusters"},
	"the WorkloadCluster no longer lists the account":                                       {later: func(_ *testing.T, l *landscape) { l.clusters.events.Modify(member("east")) }, words: "is in no WorkloadCluster"},
	"the WorkloadCluster is deleted":                                                        {later: func(_ *testing.T, l *landscape) { l.clusters.events.Delete(member("east", eastAgent)) }, words: "is in no WorkloadCluster"},
	"the WorkloadClusters have not been read yet":                                           {before: func(l *landscape) { l.cold = true }, words: "have not been read yet"},

	"an identity of a namespace that is listed":            {before: func(l *landscape) { l.plain("listed") }},
	"an identity of another namespace":                     {before: func(l *landscape) { l.plain("fruit") }, words: "does not list it"},
	"an identity of another namespace that does not exist": {before: func(l *landscape) { l.plain("empty") }, words: "does not list it"},
	"an identity of a namespace that is no longer listed": {before: func(l *landscape) { l.plain("listed") }, later: func(_ *testing.T, l *landscape) {
		changed := member("east", eastAgent)
		changed.Spec.Identities.Namespaces = nil
		l.clusters.events.Modify(changed)
	}, words: "does not list it"},
	"by a binding of a namespace that is not listed": {before: func(l *landscape) { l.plain("listed"); l.binding = "fruit/bound" }, words: "does not list the namespace fruit"},

	"an identity that the object refers to":                                    {},
	"an identity of whatever namespace that a binding of the object refers to": {before: func(l *landscape) { l.namespace = "trees" }},
	"the same, by the binding":                                                 {before: func(l *landscape) { l.namespace, l.binding = "trees", "fruit/bound" }},
	"the same, while the identity is being deleted":                            {before: func(l *landscape) { l.namespace, l.binding, l.identities.deleted = "trees", "fruit/bound", true }},
	"the same, by a binding that the object does not refer to": {before: func(l *landscape) {
		l.namespace, l.binding = "trees", "fruit/other"
		l.bindings[types.NamespacedName{Namespace: "fruit", Name: "other"}] = types.NamespacedName{Namespace: "trees", Name: "one"}
	}, words: "does not refer to the CredentialsBinding fruit/other"},
	"the object is not named":                                           {before: func(l *landscape) { l.plain("trees") }, words: "does not list it"},
	"spec.identities.fromContexts is not set":                           {before: func(l *landscape) { l.clusters.list.Items[0].Spec.Identities.FromContexts = false }, words: "does not list it"},
	"an identity that the object does not use":                          {before: func(l *landscape) { l.namespace = "stray" }, words: "does not refer to WorkloadIdentity stray/one"},
	"an identity that the object does not use, and that does not exist": {before: func(l *landscape) { l.namespace = "empty" }, words: "does not refer to WorkloadIdentity empty/one"},
	"an identity that the object refers to, and that does not exist": {before: func(l *landscape) {
		l.namespace, l.bindings = "empty", boundTo{{Namespace: "fruit", Name: "bound"}: {Namespace: "empty", Name: "one"}}
	}, words: `"one" not found`},
	"an object on another cluster":          {before: func(l *landscape) { l.caller.Name = "west-agent"; l.caller.Groups = nil }, words: "is not on WorkloadCluster west"},
	"an object that is moving here":         {before: func(l *landscape) { l.caller.Name = "west-agent" }, later: func(t *testing.T, l *landscape) { l.update(t, shoot([]any{"east", "west"}, []any{"one"}, nil)) }},
	"an object that is moving away":         {later: func(t *testing.T, l *landscape) { l.update(t, shoot([]any{"east", "west"}, []any{"one"}, nil)) }},
	"an object that has moved away":         {later: func(t *testing.T, l *landscape) { l.update(t, shoot([]any{"west"}, []any{"one"}, nil)) }, words: "is not on WorkloadCluster east"},
	"an object that no longer refers to it": {later: func(t *testing.T, l *landscape) { l.update(t, shoot([]any{"east"}, nil, nil)) }, words: "does not refer to WorkloadIdentity fruit/one"},
	"an object that no longer refers to the binding": {before: func(l *landscape) { l.namespace = "trees" }, later: func(t *testing.T, l *landscape) {
		l.update(t, shoot([]any{"east"}, []any{"one"}, nil))
	}, words: "does not refer to WorkloadIdentity trees/one"},
	"an object whose binding refers to another one": {before: func(l *landscape) { l.namespace = "trees" }, later: func(_ *testing.T, l *landscape) {
		l.bindings[types.NamespacedName{Namespace: "fruit", Name: "bound"}] = types.NamespacedName{Namespace: "stray", Name: "one"}
	}, words: "does not refer to WorkloadIdentity trees/one"},
	"an object that was deleted": {later: func(t *testing.T, l *landscape) {
		testkit.Must(t, l.client.Resource(shootResource).Namespace("fruit").Delete(t.Context(), "banana", metav1.DeleteOptions{}))
	}, words: "is not on WorkloadCluster east"},
	"an object that does not exist":                                                              {before: func(l *landscape) { l.object.Name = "apple" }, words: "is not on WorkloadCluster east"},
	"an object on another cluster, by another uid":                                               {before: func(l *landscape) { l.caller.Name, l.object.UID = "west-agent", "uid-of-before" }, words: "is not on WorkloadCluster west"},
	"an object on another cluster that does not use it":                                          {before: func(l *landscape) { l.caller.Name, l.namespace = "west-agent", "stray" }, words: "is not on WorkloadCluster west"},
	"an object of which the cluster is not known":                                                {later: func(t *testing.T, l *landscape) { l.update(t, shoot([]any{int64(1)}, []any{"one"}, nil)) }, words: "is not on WorkloadCluster east"},
	"an object of another uid":                                                                   {before: func(l *landscape) { l.object.UID = "uid-of-before" }, words: "the request names uid"},
	"an object that no ContextKind describes":                                                    {before: func(l *landscape) { l.object.Kind = "Seed" }, words: "Unsupported value"},
	"the ContextKinds have not been read yet":                                                    {before: func(l *landscape) { l.coldKinds = true }, words: "have not been read yet"},
	"an identity of a listed namespace that an object without a namespace refers to":             {before: func(l *landscape) { l.inBucket("listed") }},
	"an identity of another namespace that an object without a namespace refers to":              {before: func(l *landscape) { l.inBucket("plants") }, words: "must list it for objects without a namespace"},
	"an identity of another namespace that a binding of an object without a namespace refers to": {before: func(l *landscape) { l.inBucket("shrubs") }, words: "must list it for objects without a namespace"},
	"an identity of a listed namespace that another object lends the object":                     {before: func(l *landscape) { l.namespace = "listed" }},
	"an identity of another namespace that another object lends the object":                      {before: func(l *landscape) { l.namespace = "plants" }, words: "and for what other objects lend"},
	"an identity of another namespace that a binding of another object lends the object":         {before: func(l *landscape) { l.namespace = "shrubs" }, words: "and for what other objects lend"},
	"the objects cannot be read": {before: func(l *landscape) {
		l.client.PrependReactor("list", "shoots", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	}, words: "cannot be read"},

	"a user of another name that a WorkloadCluster lists": {before: func(l *landscape) { l.caller = user.DefaultInfo{Name: "west-agent"}; l.plain("trees") }, words: "does not list it"},
	"a user of another name that none lists":              {before: func(l *landscape) { l.caller = user.DefaultInfo{Name: "anna"}; l.plain("trees") }},
}

// The document of what an agent gets is complete, and true: the answer of each row is that of the endpoint to a caller whom RBAC lets create all
// tokens. A change counts with its event, before any time passes.
func TestAgents(t *testing.T) {
	text := testkit.Need(os.ReadFile("../../../../docs/reference/agents.md"))(t)
	documented := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^\| [0-9]+ \| (.+?) \| (token|[0-9]{3}) \|`).FindAllStringSubmatch(string(text), -1) {
		code, _ := strconv.Atoi(match[2])
		documented[match[1]] = code
	}
	if have, want := slices.Sorted(maps.Keys(agentRows)), slices.Sorted(maps.Keys(documented)); !slices.Equal(have, want) {
		t.Fatalf("rows without a test or tests without a row:\n%s", strings.Join(append(slices.DeleteFunc(slices.Clone(have), func(s string) bool { return slices.Contains(want, s) }),
			slices.DeleteFunc(want, func(s string) bool { return slices.Contains(have, s) })...), "\n"))
	}
	testRing()
	today := time.Now().Round(0)
	for name, row := range agentRows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(today)) // the keys are of today, and the clock begins in 2000
				row.check(t, documented[name])
			})
		})
	}
}

// check compares the answer with the documented one, by the clock of testing/synctest.
func (row row) check(t *testing.T, code int) {
	l := newLandscape()
	if row.before != nil {
		row.before(l)
	}
	index, follower := clusters.New(&l.clusters), contexts.New(&l.kinds, l.client, contextstest.NoDeliveries{}, clock.RealClock{})
	if !l.cold {
		go index.Run(t.Context())
	}
	if !l.coldKinds {
		go follower.Run(t.Context())
	}
	rest, _ := newREST(t, func(a authorizer.Attributes) (bool, error) { return a.GetVerb() == "use" && l.object == nil, nil }, testRing)
	rest.Identities, rest.Bindings, rest.Clusters, rest.Objects = l.identities, l.bindings, index, follower
	want := func(code int, words string) {
		t.Helper()
		tr := &Object{Spec: v1alpha1.TokenRequestSpec{ContextObject: l.object}}
		if l.binding != "" {
			tr.Metadata.Annotations = map[string]string{v1alpha1.AnnotationBinding: l.binding}
		}
		_, err := rest.Create(request.WithUser(request.WithNamespace(t.Context(), l.namespace), &l.caller), "one", tr, nil, &metav1.CreateOptions{})
		got, text := 0, ""
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			got, text = int(status.Status().Code), err.Error()
		} else if err != nil {
			got = -1
		}
		if got != code || !strings.Contains(text, words) || strings.Contains(text, "on WorkloadCluster") && !strings.HasSuffix(text, ", or does not exist") {
			t.Errorf("%v, want %d with %q", err, code, words)
		}
	}
	time.Sleep(time.Minute) // all is read, and watched
	if row.later != nil {
		if l.caller.Name == eastAgent {
			want(0, "")
		}
		row.later(t, l)
		synctest.Wait() // no time passes
	}
	want(code, row.words)
}
