package workloadidentity_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// server is what an API server does with identities, in an etcd.
type server struct {
	*workloadidentity.REST
	etcd   *clientv3.Client
	prefix string // of what is stored
}

func newServer(t *testing.T) server {
	t.Helper()
	storage := apiservertest.NewStorage(t)
	client := testkit.Need(clientv3.New(clientv3.Config{Endpoints: []string{storage.Endpoint}}))(t)
	t.Cleanup(func() { _ = client.Close() })
	scheme := testkit.Need(apiserver.NewScheme())(t)
	options := storage.RESTOptions(scheme, apiserver.GroupVersions()...)
	identities := testkit.Need(workloadidentity.NewREST(scheme, options, "https://issuer.example.com", apiservertest.Rights{apiservertest.All}))(t)
	t.Cleanup(identities.Destroy)
	testkit.Must(t, identities.TakeUIDs(t.Context()))
	return server{identities, client, storage.Prefix}
}

// make makes an identity of namespace shop, with a uid unless it is empty, and returns its uid.
func (s server) make(ctx context.Context, name string, given types.UID, applied, dryRun bool) (types.UID, error) {
	ctx = apiservertest.As(ctx, "adopter", "shop")
	if given != "" {
		ctx = workloadidentity.WithGivenUID(ctx, workloadidentity.GivenUID{UID: given, Applied: applied})
	}
	var dry []string
	if dryRun {
		dry = []string{metav1.DryRunAll}
	}
	wi := &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1alpha1.WorkloadIdentitySpec{
		Audiences: []string{"a"}, TargetSystem: v1alpha1.TargetSystem{Type: "generic"},
	}}
	var made runtime.Object
	var err error
	if applied {
		made, _, err = s.Update(ctx, name, rest.DefaultUpdatedObjectInfo(wi), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{DryRun: dry})
	} else {
		made, err = s.Create(ctx, wi, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dry})
	}
	if err != nil {
		return "", err
	}
	return made.(*v1alpha1.WorkloadIdentity).UID, nil
}

// lose takes the stored object of an identity away, and nothing else, as an older copy of the storage lacks it.
func (s server) lose(t *testing.T, name string) {
	t.Helper()
	all := testkit.Need(s.etcd.Get(t.Context(), s.prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()))(t)
	for _, kv := range all.Kvs {
		if strings.HasSuffix(string(kv.Key), "workloadidentities/shop/"+name) {
			testkit.Must(t, testkit.Err(s.etcd.Delete(t.Context(), string(kv.Key))))
			return
		}
	}
	t.Fatalf("shop/%s is not among %v", name, all.Kvs)
}

// An identity that a storage has lost, as it was put back from before it, is given its uid again, and no other identity is. Nor is another one given
// that of an identity that is stored, or was deleted.
func TestAdoptInAnOlderStorage(t *testing.T) {
	for way, applied := range map[string]bool{"created": false, "applied": true} {
		t.Run(way, func(t *testing.T) {
			s := newServer(t)
			make := func(name string, given types.UID, dryRun bool) types.UID {
				t.Helper()
				uid, err := s.make(t.Context(), name, given, applied, dryRun)
				if err != nil || given != "" && uid != given {
					t.Fatalf("%s: uid %q of %q, %v", name, uid, given, err)
				}
				return uid
			}
			refused := func(name string, given types.UID) {
				t.Helper()
				for _, dryRun := range []bool{true, false} {
					if uid, err := s.make(t.Context(), name, given, applied, dryRun); apierrors.ReasonForError(err) != metav1.StatusReasonInvalid || !strings.Contains(err.Error(), "is, or was, the uid of another identity") {
						t.Errorf("%s is given %s: %q, %v, want %d", name, given, uid, err, http.StatusUnprocessableEntity)
					}
				}
			}
			lost, living, deleted := make("lost", "", false), make("living", "", false), make("deleted", "", false)
			if _, _, err := s.Delete(request.WithNamespace(t.Context(), "shop"), "deleted", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			s.lose(t, "lost")
			for _, uid := range []types.UID{lost, living, deleted} {
				refused("thief", uid)
			}
			make("lost", lost, true)
			refused("thief", lost)
			make("lost", lost, false)
			make("deleted", deleted, false)
			s.lose(t, "lost")
			refused("thief", lost)
			make("lost", lost, false)
		})
	}
}
