package workloadcluster_test

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadcluster"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const account = "system:serviceaccount:workload-clusters:east"

// server stores WorkloadClusters in an etcd; its authorizer can be replaced.
type server struct {
	*workloadcluster.REST
	rights authorizer.UnconditionalAuthorizer
}

func (s *server) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	return s.rights.Authorize(ctx, a)
}

func start(t *testing.T) *server {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	testkit.Must(t, err)
	s := &server{rights: apiservertest.Rights{apiservertest.All}}
	options := apiservertest.NewStorage(t).RESTOptions(scheme, apiserver.GroupVersions()...)
	if s.REST, err = workloadcluster.NewREST(scheme, options, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Destroy)
	return s
}

func named(name string, users, namespaces []string) *v1alpha1.WorkloadCluster {
	cluster := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.Users, cluster.Spec.Identities.Namespaces = users, namespaces
	return cluster
}

func (s *server) create(ctx context.Context, cluster *v1alpha1.WorkloadCluster) (*v1alpha1.WorkloadCluster, error) {
	made, err := s.Create(ctx, cluster, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return made.(*v1alpha1.WorkloadCluster), nil
}

func (s *server) update(ctx context.Context, name string, change func(*v1alpha1.WorkloadCluster)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*v1alpha1.WorkloadCluster)
		change(changed)
		return changed, nil
	})
	_, _, err := s.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

func (s *server) stored(t *testing.T, name string) *v1alpha1.WorkloadCluster {
	t.Helper()
	found := testkit.Need(s.Get(request.WithNamespace(t.Context(), ""), name, &metav1.GetOptions{}))(t)
	return found.(*v1alpha1.WorkloadCluster)
}

// warnings are those of one request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func TestWritersMayDoWhatTheyOpenToACluster(t *testing.T) {
	s := start(t)
	ctx := apiservertest.As(t.Context(), "jane", "")
	create := func(name string, users, namespaces []string, fromContexts bool, rights ...string) error {
		s.rights = apiservertest.Rights(rights)
		cluster := named(name, users, namespaces)
		cluster.Spec.Identities.FromContexts = fromContexts
		_, err := s.create(ctx, cluster)
		return err
	}
	token := func(namespace string) string { return "create workloadidentities/token " + namespace + "/" }
	const everywhere = "create workloadidentities/token"
	for name, test := range map[string]struct {
		users, namespaces []string
		fromContexts      bool
		rights            []string
		want              string
	}{
		"an account of a joined cluster": {users: []string{account}},
		"another user":                   {users: []string{"agent"}, want: `user "jane" cannot impersonate user "agent"`},
		"another user, impersonated":     {users: []string{"agent"}, rights: []string{"impersonate users /agent"}},
		"another account":                {users: []string{"system:serviceaccount:a:b"}, want: `cannot impersonate user "system:serviceaccount:a:b"`},
		"another account, impersonated":  {users: []string{"system:serviceaccount:a:b"}, rights: []string{"impersonate serviceaccounts a/b"}},
		"a namespace":                    {namespaces: []string{"shop"}, want: `cannot create resource "workloadidentities/token" in API group "authentication.gardener.cloud" in namespace shop`},
		"a namespace with the right":     {namespaces: []string{"shop"}, rights: []string{token("shop")}},
		"one of two namespaces":          {namespaces: []string{"shop", "bank"}, rights: []string{token("shop")}, want: "in namespace bank"},
		"the right everywhere":           {namespaces: []string{"shop", "bank"}, rights: []string{everywhere}},
		"of contexts":                    {fromContexts: true, want: "in all namespaces, as spec.identities.fromContexts needs it"},
		"of contexts, everywhere":        {fromContexts: true, rights: []string{everywhere}},
	} {
		err := create("east", test.users, test.namespaces, test.fromContexts, test.rights...)
		if test.want != "" {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", name, err, test.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, _, err := s.Delete(ctx, "east", nil, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, create("east", []string{account}, []string{"shop"}, false, apiservertest.All))
	s.rights = apiservertest.Away{Err: errors.New("no route to host")}
	add := func(cluster *v1alpha1.WorkloadCluster) {
		cluster.Spec.Identities.Namespaces = append(cluster.Spec.Identities.Namespaces, "bank")
	}
	if err := s.update(ctx, "east", add); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without an authorizer: %v", err)
	}
	if err := s.update(request.WithNamespace(t.Context(), ""), "east", add); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a user: %v", err)
	}
	// A writer that adds a user opens all namespaces to it. A writer that adds nothing opens none.
	s.rights = apiservertest.Rights{"impersonate users /agent"}
	addUser := func(cluster *v1alpha1.WorkloadCluster) { cluster.Spec.Users = append(cluster.Spec.Users, "agent") }
	if err := s.update(ctx, "east", addUser); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "in namespace shop") {
		t.Errorf("another user: %v", err)
	}
	testkit.Expect(t, s.update(ctx, "east", func(cluster *v1alpha1.WorkloadCluster) { cluster.Spec.Identities.Namespaces = nil }), "no namespace any more")
}

func TestWorkloadClustersThatAreInvalid(t *testing.T) {
	s := start(t)
	ctx := apiservertest.As(t.Context(), "jane", "")
	testkit.Must(t, testkit.Err(s.create(ctx, named("west", []string{"agent"}, nil))))
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("n-%d", i))
		}
		return all
	}
	for name, test := range map[string]struct {
		users, namespaces []string
		want              string
	}{
		"a user of another cluster":   {users: []string{"other", "agent"}, want: "spec.users[1]: Invalid value: \"agent\": is a user of WorkloadCluster west"},
		"a user twice":                {users: []string{"a", "a"}, want: "spec.users[1]: Duplicate"},
		"an empty user":               {users: []string{""}, want: "must be the name of a user"},
		"an unprintable user":         {users: []string{"a\nb"}, want: "must be the name of a user"},
		"a long user":                 {users: []string{strings.Repeat("u", 513)}, want: "must be the name of a user"},
		"anonymous users":             {users: []string{"system:anonymous"}, want: "a user who is authenticated"},
		"a part of Credence":          {users: []string{"system:serviceaccount:credence-system:credence-agent"}, want: "must not be a part of Credence"},
		"many users":                  {users: many(11), want: "spec.users: Too many"},
		"many namespaces":             {namespaces: many(1001), want: "spec.identities.namespaces: Too many"},
		"a namespace that can't be":   {namespaces: []string{"A"}, want: "spec.identities.namespaces[0]: Invalid"},
		"a namespace that is twice":   {namespaces: []string{"a", "a"}, want: "spec.identities.namespaces[1]: Duplicate"},
		"a name that can't be a name": {want: "metadata.name: Invalid"},
	} {
		of := "east"
		if len(test.users)+len(test.namespaces) == 0 {
			of = "not.a.label"
		}
		if _, err := s.create(ctx, named(of, test.users, test.namespaces)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Namespaces of a cluster bound the tokens of its users: one who leaves it gains rights.
func TestUsersWhoLeaveAClusterAreWarnedOf(t *testing.T) {
	s := start(t)
	var got warnings
	ctx := warning.WithWarningRecorder(apiservertest.As(t.Context(), "jane", ""), &got)
	testkit.Must(t, testkit.Err(s.create(ctx, named("east", []string{account, "agent", "webhook"}, nil))))
	remove := func(user string) {
		t.Helper()
		testkit.Must(t, s.update(ctx, "east", func(cluster *v1alpha1.WorkloadCluster) {
			cluster.Spec.Users = slices.DeleteFunc(cluster.Spec.Users, func(name string) bool { return name == user })
		}))
	}
	remove(account)
	if len(got) != 0 {
		t.Errorf("an account of a joined cluster leaves: %q", got)
	}
	remove("agent")
	if len(got) != 1 || !strings.Contains(got[0], "RBAC alone now decides which tokens agent can create") {
		t.Errorf("a user leaves: %q", got)
	}
	got = nil
	if _, _, err := s.Delete(ctx, "east", nil, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.Contains(got[0], "tokens webhook can create") {
		t.Errorf("the cluster is deleted: %q", got)
	}
}

// The status is the server's, and is that of one cluster for its life.
func TestSightingsAreWrittenIntoTheStatus(t *testing.T) {
	s := start(t)
	ctx := apiservertest.As(t.Context(), "jane", "")
	forged := named("east", []string{account}, nil)
	forged.Status.AgentVersion = "forged"
	made, err := s.create(ctx, forged)
	if err != nil || made.Status.AgentVersion != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	see := func(uid types.UID, version string) *v1alpha1.WorkloadCluster {
		t.Helper()
		of := made.DeepCopy()
		of.UID = uid
		testkit.Must(t, s.Seen(t.Context(), of, at, version))
		return s.stored(t, "east")
	}
	if got := see("another", "v1"); got.Status.LastSeenTime != nil {
		t.Errorf("a cluster of another uid was seen: %+v", got.Status)
	}
	seen := see(made.UID, "v1")
	if seen.Status.AgentVersion != "v1" || seen.Status.LastSeenTime == nil || !seen.Status.LastSeenTime.Time.Equal(at) || seen.Generation != 1 {
		t.Errorf("seen: %+v, generation %d", seen.Status, seen.Generation)
	}
	if again := see(made.UID, "v1"); again.ResourceVersion != seen.ResourceVersion {
		t.Error("what was stored a moment ago is written again")
	}
	testkit.Must(t, s.update(ctx, "east", func(cluster *v1alpha1.WorkloadCluster) { cluster.Status = v1alpha1.WorkloadClusterStatus{} }))
	if got := s.stored(t, "east"); got.Status.AgentVersion != "v1" {
		t.Errorf("an update of the object has changed its status: %+v", got.Status)
	}
	gone := named("gone", nil, nil)
	testkit.Expect(t, s.Seen(t.Context(), gone, at, "v1"), "a cluster that was deleted")
	table, err := s.ConvertToTable(ctx, s.stored(t, "east"), nil)
	if err != nil || table.Rows[0].Cells[5] != "v1" || table.Rows[0].Cells[2] == "never" {
		t.Errorf("table %+v, %v", table, err)
	}
}
