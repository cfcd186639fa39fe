package credentialsdata

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/contexts/contextstest"
	"github.com/credence-id/credence/test/testkit"
)

const group, version = "core.gardener.cloud", "v1beta1"

var shoots = schema.GroupVersionResource{Group: group, Version: version, Resource: "shoots"}

// object is on clusters, and refers to bindings.
func object(kind, namespace, name string, on, bindings []any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind, "spec": map[string]any{"on": on, "bindings": bindings}}}
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetUID(types.UID("uid-of-" + name))
	return made
}

// kinds are those of Shoots and of BackupBuckets, which lend the Shoot fruit/borrower their bindings.
func kinds() *contextstest.Kinds {
	kind := func(name, resource, claim, scope string) identityv1alpha1.ContextKind {
		return identityv1alpha1.ContextKind{
			ObjectMeta: metav1.ObjectMeta{Name: resource + "." + group, ResourceVersion: "1"},
			Spec: identityv1alpha1.ContextKindSpec{
				Object: identityv1alpha1.ContextResource{Group: group, Version: version, Resource: resource, Kind: name, Scope: scope},
				Claim:  claim, Clusters: "object.spec.on", References: []identityv1alpha1.ContextReference{{Name: "bound", CredentialsBindings: "object.spec.bindings"}},
			},
		}
	}
	all := contextstest.Kinds{kind("Shoot", "shoots", "shoot", ""), kind("BackupBucket", "backupbuckets", "backupBucket", "Cluster")}
	all[0].Spec.Related = []identityv1alpha1.RelatedObject{{Claim: "backupBucket", Resource: "backupbuckets", Key: "candidate.metadata.name", Of: "object.metadata.name", Lends: true}}
	return &all
}

// The data of a binding is given to the cluster that an object is on, if the object refers to the binding, and to no other.
func TestDataByObject(t *testing.T) {
	update := func(t *testing.T, c *fake.FakeDynamicClient, changed *unstructured.Unstructured) {
		testkit.Must(t, testkit.Err(c.Resource(shoots).Namespace("fruit").Update(t.Context(), changed, metav1.UpdateOptions{})))
	}
	named := func(s *scene, kind, namespace, name string) {
		s.request.Spec.ContextObject = &v1alpha1.ContextObject{APIVersion: group + "/" + version, Kind: kind, Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}
	}
	elsewhere := "is not on WorkloadCluster east, or does not exist"
	for what, test := range map[string]struct {
		change func(*scene)
		// later changes the objects once the data was given.
		later func(*testing.T, *fake.FakeDynamicClient)
		cold  bool // the ContextKinds are not read
		away  bool // the objects are not read
		code  int32
		words string
	}{
		"it names the binding":                 {code: 200},
		"its namespace is listed":              {change: func(s *scene) { s.listed, s.narrow = []string{"fruit"}, true }, code: 200},
		"it is not, and objects widen nothing": {change: func(s *scene) { s.narrow = true }, code: 403, words: "may not have data of bindings of the namespace fruit"},
		"it is on another cluster":             {change: func(s *scene) { named(s, "Shoot", "fruit", "west") }, code: 403, words: elsewhere},
		"it does not exist":                    {change: func(s *scene) { named(s, "Shoot", "fruit", "none") }, code: 403, words: elsewhere},
		"it is of another namespace":           {change: func(s *scene) { named(s, "Shoot", "trees", "banana") }, code: 403, words: elsewhere},
		"it is moving away": {later: func(t *testing.T, c *fake.FakeDynamicClient) {
			update(t, c, object("Shoot", "fruit", "banana", []any{"east", "west"}, []any{"infra"}))
		}, code: 200},
		"it has moved away": {later: func(t *testing.T, c *fake.FakeDynamicClient) {
			update(t, c, object("Shoot", "fruit", "banana", []any{"west"}, []any{"infra"}))
		}, code: 403, words: elsewhere},
		"its clusters are not known": {later: func(t *testing.T, c *fake.FakeDynamicClient) {
			update(t, c, object("Shoot", "fruit", "banana", []any{int64(1)}, []any{"infra"}))
		}, code: 403, words: elsewhere},
		"it no longer names the binding": {later: func(t *testing.T, c *fake.FakeDynamicClient) {
			update(t, c, object("Shoot", "fruit", "banana", []any{"east"}, nil))
		}, code: 403, words: "does not refer to the binding"},
		"it was deleted": {later: func(t *testing.T, c *fake.FakeDynamicClient) {
			testkit.Eventually(t, "the objects are watched", func() bool {
				for _, action := range c.Actions() {
					if action.Matches("watch", "shoots") {
						return true
					}
				}
				return false
			})
			testkit.Must(t, c.Resource(shoots).Namespace("fruit").Delete(t.Context(), "banana", metav1.DeleteOptions{}))
		}, code: 403, words: elsewhere},
		"it names another binding": {change: func(s *scene) { named(s, "Shoot", "fruit", "other") }, code: 403, words: "does not refer to the binding"},
		"it is of another uid":     {change: func(s *scene) { s.request.Spec.ContextObject.UID = "u0" }, code: 403, words: "another uid"},
		"without its uid":          {change: func(s *scene) { s.request.Spec.ContextObject.UID = "" }, code: 403, words: "another uid"},
		"no ContextKind has it":    {change: func(s *scene) { s.request.Spec.ContextObject.Kind = "Seed" }, code: 403, words: "no ContextKind has objects"},
		"another version":          {change: func(s *scene) { s.request.Spec.ContextObject.APIVersion = group + "/v1" }, code: 403, words: "no ContextKind has objects"},
		"a service account": {change: func(s *scene) {
			named(s, "ServiceAccount", "fruit", "banana")
			s.request.Spec.ContextObject.APIVersion = "v1"
		}, code: 403, words: "no ContextKind has objects"},
		"ContextKinds are not known":                   {cold: true, code: 503},
		"objects are not known":                        {away: true, code: 503},
		"the webhook":                                  {change: func(s *scene) { s.caller = prefix + "east-webhook" }, code: 403, words: "data is given to agents alone"},
		"an agent that has left":                       {change: func(s *scene) { s.caller = prefix + "left-agent" }, code: 403, words: "no WorkloadCluster lists"},
		"a person":                                     {change: func(s *scene) { s.caller = "admin" }, code: 403, words: "no WorkloadCluster lists"},
		"an agent of two":                              {change: func(s *scene) { s.caller = prefix + "both-agent" }, code: 403, words: "several"},
		"the Secret does not consent":                  {change: func(s *scene) { s.secret.Labels = nil }, code: 403, words: "does not consent"},
		"the Secret consents to others":                {change: func(s *scene) { s.secret.Annotations[v1alpha1.AnnotationCopiedFor] = "trees" }, code: 403, words: "does not consent"},
		"the server may not read it":                   {change: func(s *scene) { s.failure = apierrors.NewForbidden(corev1.Resource("secrets"), "static", nil) }, code: 403, words: "may not read Secret static"},
		"the binding was flipped":                      {change: func(s *scene) { s.binding.SecretRef, s.binding.WorkloadIdentityRef = nil, s.binding.SecretRef }, code: 409, words: "refers to no Secret"},
		"the binding is gone":                          {change: func(s *scene) { s.binding = nil }, code: 404},
		"no namespace, and not listed":                 {change: func(s *scene) { named(s, "BackupBucket", "", "bucket") }, code: 403, words: "does not list the namespace fruit"},
		"no namespace, listed, and not allowed":        {change: func(s *scene) { named(s, "BackupBucket", "", "bucket"); s.listed = []string{"fruit"} }, code: 403, words: "credence:workloadidentities:granter there, can grant it the verb use"},
		"no namespace, listed, and allowed":            {change: func(s *scene) { named(s, "BackupBucket", "", "bucket"); s.listed, s.mayUse = []string{"fruit"}, true }, code: 200},
		"another one lends it, and not listed":         {change: func(s *scene) { named(s, "Shoot", "fruit", "bucket") }, code: 403, words: "does not list the namespace fruit"},
		"another one lends it, listed and not allowed": {change: func(s *scene) { named(s, "Shoot", "fruit", "bucket"); s.listed = []string{"fruit"} }, code: 403, words: "credence:workloadidentities:granter there, can grant it the verb use"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.listed, s.mayUse = []string{"listed"}, false
			named(s, "Shoot", "fruit", "banana")
			if test.change != nil {
				test.change(s)
			}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{shoots: "ShootList", {Group: group, Version: version, Resource: "backupbuckets"}: "BackupBucketList"},
				object("Shoot", "fruit", "banana", []any{"east"}, []any{"infra"}), object("Shoot", "fruit", "west", []any{"west"}, []any{"infra"}), object("Shoot", "fruit", "other", []any{"east"}, []any{"other"}),
				object("Shoot", "fruit", "bucket", []any{"east"}, nil), object("BackupBucket", "", "bucket", []any{"east"}, []any{"fruit/infra"}))
			if test.away {
				client.PrependReactor("list", "shoots", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
			}
			follower := contexts.New(kinds(), client, contextstest.NoDeliveries{}, clock.RealClock{})
			s.objects = follower
			if !test.cold {
				go follower.Run(t.Context())
			}
			ask := func(code int32, words string) error {
				data, err := s.create(t)
				status := apierrors.APIStatus(nil)
				switch {
				case err == nil && (code != http.StatusOK || string(data["secretAccessKey"]) != "s3cret"):
					return fmt.Errorf("%d keys, want %d", len(data), code)
				case err != nil && (!errors.As(err, &status) || status.Status().Code != code || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "s3cret")):
					return fmt.Errorf("%w, want %d with %q", err, code, words)
				}
				return nil
			}
			eventually := func(code int32, words string) {
				t.Helper()
				var last error
				t.Cleanup(func() {
					if last != nil {
						t.Log(last)
					}
				})
				testkit.Eventually(t, "the answer is as it should be", func() bool {
					last = ask(code, words)
					return last == nil
				})
			}
			if test.later != nil {
				eventually(http.StatusOK, "")
				test.later(t, client)
			}
			eventually(test.code, test.words)
			if s.caller != prefix+"east-agent" {
				return
			}
			// Reviews of objects have the same answer.
			err := s.reviewed(t)
			if status := apierrors.APIStatus(nil); (err == nil) != (test.code == http.StatusOK) || errors.As(err, &status) && (status.Status().Code != test.code || !strings.Contains(err.Error(), test.words)) {
				t.Errorf("reviewed: %v, want %d with %q", err, test.code, test.words)
			}
		})
	}
}
