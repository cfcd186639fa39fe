package landscapes_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/contexts/contextstest"
	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// writer may write the objects, and use no identity.
const writer = "writer"

// server is an API server that serves one set of kinds.
type server struct {
	admin, writer dynamic.Interface
}

func start(t *testing.T) server {
	t.Helper()
	dir, err := os.MkdirTemp("", "credence-landscapes-") // short, for etcd's socket
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	plane, err := controlplane.Start(t.Context(), dir, "--port", "0")
	testkit.Must(t, err)
	t.Cleanup(plane.Stop)
	limited := rest.CopyConfig(plane.Admin)
	limited.Impersonate.UserName = writer
	s := server{client(t, plane.Admin), client(t, limited)}
	for _, manifest := range []string{
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: writer}, rules: [{apiGroups: [core.gardener.cloud, cluster.x-k8s.io], resources: ["*"], verbs: [create]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: writer}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: writer}]}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: garden-local}}`,
	} {
		s.apply(t, object(t, manifest))
	}
	return s
}

func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	config.QPS = -1
	made := testkit.Need(dynamic.NewForConfig(config))(t)
	return made
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	testkit.Must(t, yaml.Unmarshal([]byte(text), &made.Object))
	return made
}

// in is where an object is written.
func in(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if namespace := object.GetNamespace(); namespace != "" {
		return client.Resource(resource).Namespace(namespace)
	}
	return client.Resource(resource)
}

// apply makes an object, or makes it what is wanted.
func (s server) apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if _, err := in(s.admin, object).Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// serve serves the kinds of some files, as they have them.
func (s server) serve(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		text := testkit.Need(fs.ReadFile(os.DirFS("testdata"), file))(t)
		for _, document := range strings.Split(string(text), "\n---\n") {
			s.apply(t, object(t, document))
		}
	}
}

// remove ends the serving of a kind, which a test has without objects.
func (s server) remove(t *testing.T, name string) {
	t.Helper()
	definitions := s.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	testkit.Must(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	testkit.Wait(t, func(ctx context.Context) error {
		if _, err := definitions.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %w", name, err)
		}
		return nil
	})
}

// options applies the policies of the options, and returns their ContextKinds; with other texts in place of theirs.
func (s server) options(t *testing.T, oldnew ...string) contextstest.Kinds {
	t.Helper()
	var kinds contextstest.Kinds
	all := testkit.Need(deploy.Files())(t)
	for _, file := range all {
		for _, each := range file.Objects {
			switch {
			case each.GetKind() == "ContextKind":
				text := testkit.Need(each.MarshalJSON())(t)
				var kind v1alpha1.ContextKind
				testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object(t, strings.NewReplacer(oldnew...).Replace(string(text))).Object, &kind, true))
				kind.ResourceVersion = "1"
				kinds = append(kinds, kind)
			case strings.HasPrefix(each.GetKind(), "ValidatingAdmissionPolicy") && (strings.HasSuffix(each.GetName(), ".core.gardener.cloud") || strings.HasSuffix(each.GetName(), ".cluster.x-k8s.io")):
				s.apply(t, each)
			}
		}
	}
	return kinds
}

// refused waits until a policy of the options keeps the writer from making an object, for a reference to an identity or binding.
func (s server) refused(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	testkit.Wait(t, func(ctx context.Context) error {
		_, err := in(s.writer, object).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), writer+" may not ") {
			return fmt.Errorf("%s %s is answered: %w", object.GetKind(), object.GetName(), err)
		}
		return nil
	})
}

// create makes an object with its status, once the kinds are served. No field may be unknown.
func (s server) create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	var made *unstructured.Unstructured
	status, hasStatus := object.Object["status"]
	testkit.Wait(t, func(ctx context.Context) (err error) {
		made, err = in(s.admin, object).Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return err
	})
	if hasStatus {
		made.Object["status"] = status
		var err error
		if made, err = in(s.admin, made).UpdateStatus(t.Context(), made, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		testkit.Expect(t, in(s.admin, object).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}))
	})
	return made
}

// unknown waits until an object is refused, as its kind has no such field.
func (s server) unknown(t *testing.T, object *unstructured.Unstructured, field string) {
	t.Helper()
	testkit.Wait(t, func(ctx context.Context) error {
		_, err := in(s.admin, object).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if err == nil || !strings.Contains(err.Error(), `unknown field "`+field+`"`) {
			return fmt.Errorf("%s with %s is answered: %w", object.GetKind(), field, err)
		}
		return nil
	})
}

// follow reads the objects as the API server does.
func (s server) follow(t *testing.T, kinds contextstest.Kinds) *contexts.Follower {
	t.Helper()
	follower := contexts.New(&kinds, s.admin, contextstest.NoDeliveries{}, clock.RealClock{})
	go follower.Run(t.Context())
	return follower
}
