package contextkind_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/contextkind"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// writer has the rights that a ContextKind of databases, in projects, needs.
var writer = apiservertest.Rights{
	"create workloadidentities/token", "get databases", "list databases", "watch databases", "get projects", "list projects", "watch projects",
}

// server stores ContextKinds in an etcd; its authorizer can be replaced.
type server struct {
	*contextkind.REST
	rights authorizer.UnconditionalAuthorizer
}

func (s *server) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	return s.rights.Authorize(ctx, a)
}

func start(t *testing.T) *server {
	t.Helper()
	scheme := testkit.Need(apiserver.NewScheme())(t)
	s := &server{rights: writer}
	s.REST = testkit.Need(contextkind.NewREST(scheme, apiservertest.NewStorage(t).RESTOptions(scheme, apiserver.GroupVersions()...), s))(t)
	t.Cleanup(s.Destroy)
	return s
}

// databases is a valid ContextKind.
func databases() *v1alpha1.ContextKind {
	return &v1alpha1.ContextKind{
		ObjectMeta: metav1.ObjectMeta{Name: "databases.example.com"},
		Spec: v1alpha1.ContextKindSpec{
			Object:     v1alpha1.ContextResource{Group: "example.com", Version: "v1", Resource: "databases", Kind: "Database"},
			Claim:      "database",
			References: []v1alpha1.ContextReference{{Name: "backup", WorkloadIdentities: "[object.spec.identity]"}},
			Related: []v1alpha1.RelatedObject{{
				Claim: "project", Resource: "projects", Key: "candidate.spec.?namespace.orValue('')", Of: "object.metadata.namespace",
			}},
		},
	}
}

func (s *server) create(ctx context.Context, kind *v1alpha1.ContextKind) error {
	_, err := s.Create(ctx, kind.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

func (s *server) update(ctx context.Context, name string, change func(*v1alpha1.ContextKind)) (*v1alpha1.ContextKind, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*v1alpha1.ContextKind)
		change(changed)
		return changed, nil
	})
	updated, _, err := s.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated.(*v1alpha1.ContextKind), nil
}

func TestWritersNeedTheRightsThatAContextKindUses(t *testing.T) {
	s := start(t)
	ctx := apiservertest.As(t.Context(), "jane", "")
	for i, missing := range writer {
		s.rights = append(append(apiservertest.Rights{}, writer[:i]...), writer[i+1:]...)
		verb, resource, _ := strings.Cut(missing, " ")
		err := s.create(ctx, databases())
		if want := `user "jane" cannot ` + verb + ` resource "` + resource + `"`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("without the right to %s: %v, want %q", missing, err, want)
		}
	}
	s.rights = apiservertest.Away{Err: errors.New("no route to host")}
	if err := s.create(ctx, databases()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without an authorizer: %v", err)
	}
	s.rights = writer
	if err := s.create(request.WithNamespace(t.Context(), ""), databases()); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a user: %v", err)
	}
	testkit.Must(t, s.create(ctx, databases()))

	// Labels need no right, and another spec does.
	s.rights = apiservertest.Rights{}
	labeled, err := s.update(ctx, databases().Name, func(kind *v1alpha1.ContextKind) { kind.Labels = map[string]string{"a": "b"} })
	if err != nil || labeled.Generation != 1 {
		t.Errorf("labeled: generation %d, %v", labeled.Generation, err)
	}
	other := func(kind *v1alpha1.ContextKind) { kind.Spec.Claim = "db" }
	if _, err := s.update(ctx, databases().Name, other); !apierrors.IsForbidden(err) {
		t.Errorf("another claim, without rights: %v", err)
	}
	s.rights = writer
	if changed, err := s.update(ctx, databases().Name, other); err != nil || changed.Generation != 2 {
		t.Errorf("another claim: %v", err)
	}
}

func TestContextKindsThatAreInvalid(t *testing.T) {
	s := start(t)
	s.rights = apiservertest.Rights{apiservertest.All}
	ctx := apiservertest.As(t.Context(), "jane", "")
	testkit.Must(t, s.create(ctx, databases()))
	for name, test := range map[string]struct {
		change func(*v1alpha1.ContextKind)
		want   string
	}{
		"another name":  {func(kind *v1alpha1.ContextKind) { kind.Name = "dbs" }, "metadata.name: Invalid value: \"dbs\": must be databases.example.com"},
		"no expression": {func(kind *v1alpha1.ContextKind) { kind.Spec.References[0].WorkloadIdentities = "[" }, "does not compile"},
		"a claim of another resource": {func(kind *v1alpha1.ContextKind) {
			kind.Name, kind.Spec.Object.Resource, kind.Spec.Object.Kind = "queues.example.com", "queues", "Queue"
		}, "is that of another resource in ContextKind databases.example.com"},
	} {
		kind := databases()
		test.change(kind)
		if err := s.create(ctx, kind); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	moved := func(kind *v1alpha1.ContextKind) { kind.Spec.Object.Version = "v2" }
	if _, err := s.update(ctx, databases().Name, moved); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.object") {
		t.Errorf("another version of the objects: %v, want that spec.object is immutable", err)
	}
	table, err := s.ConvertToTable(ctx, databases(), nil)
	if err != nil || table.Rows[0].Cells[1] != "example.com/v1 Database" || table.Rows[0].Cells[2] != "database,project" {
		t.Errorf("table %+v, %v", table, err)
	}
}
