package objects

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// A failure after the first write has what was written before it, and how to go on.
func TestFailureBetweenWrites(t *testing.T) {
	writes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"roles \"x\" not found"}`))
		case r.URL.Query().Get("dryRun") == "":
			if writes++; writes == 3 {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd is away"}`))
				return
			}
			fallthrough
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"metadata":{"name":"x"}}`))
		}
	}))
	defer server.Close()
	api := testkit.Need(cluster.New(&rest.Config{Host: server.URL}))(t)
	var all []Object
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, Role(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}))
	}
	failed, ok := errors.AsType[*command.Failure](Writer{API: api, DryRun: "none", Program: "credence"}.Apply(t.Context(), all))
	const want = "before that: role.rbac.authorization.k8s.io/a created, role.rbac.authorization.k8s.io/b created. Run the command again to complete it"
	if !ok || writes != 3 || !strings.Contains(failed.Hint, want) {
		t.Errorf("%d writes: %+v, %q", writes, failed, failed.Hint)
	}
}

// In a dry run a RoleBinding may be of a Role that is not there because it was not kept, and of no other.
func TestOfNewRole(t *testing.T) {
	role := Role(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	role.done = "created"
	other := Role(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "y"}})
	other.done = "created"
	binding := Binding(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "x"}})
	ofCluster := Binding(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "x"}})
	if !ofNewRole(binding, []Object{other, role}) || ofNewRole(binding, []Object{other}) || ofNewRole(binding, nil) || ofNewRole(ofCluster, []Object{role}) {
		t.Error("a wrong answer")
	}
}
