package keeper

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/test/testkit"
)

func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects := testkit.Need(deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.ReviewPaths, deploy.Registration, deploy.Certificates))(t)
	return objects
}

// Every webhook configuration that is installed, and the APIService of every group, gets a caBundle.
func TestCallersAreAllThatIsInstalled(t *testing.T) {
	want := map[string]bool{}
	for _, group := range []string{authenticationv1alpha1.GroupName, identityv1alpha1.GroupName} {
		want["apiservices v1alpha1."+group] = true
	}
	for _, object := range manifests(t) {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			want[strings.ToLower(object.GetKind())+"s "+object.GetName()] = true
		}
	}
	got := map[string]bool{}
	for _, caller := range callers() {
		got[caller.String()] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-installed +written):\n%s", diff)
	}
}

// The rights and the policy are for the objects that are written, and no others.
func TestRightsAreForWhatIsWritten(t *testing.T) {
	want := map[string]bool{}
	for _, caller := range callers() {
		want[caller.String()] = true
	}
	secrets := []string{certificates.AuthoritySecret}
	for _, component := range certificates.Components() {
		secrets = append(secrets, certificates.SecretOf(component))
	}
	for _, name := range secrets {
		want["secrets "+name] = true
	}
	want["clusterroles credence:apiserver"], want["namespaces credence-system"] = true, true // read, for --register-api
	got := map[string]bool{}
	for _, object := range manifests(t) {
		switch {
		case slices.Contains([]string{"credence:registration", "credence:certificates"}, object.GetName()) && strings.HasSuffix(object.GetKind(), "Role"):
			role := &rbacv1.ClusterRole{}
			testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
			for _, rule := range role.Rules {
				for _, name := range rule.ResourceNames {
					if rule.Resources[0] != "leases" {
						got[rule.Resources[0]+" "+name] = true
					}
				}
				if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, "delete") && rule.Resources[0] != "apiservices" || slices.Contains(rule.Verbs, "patch") && rule.Resources[0] != "events" {
					t.Errorf("%s gives %v", object.GetKind(), rule)
				}
				if object.GetName() == "credence:registration" && (slices.Contains(rule.Resources, "secrets") || strings.Contains(rule.Resources[0], "webhook")) {
					t.Errorf("with certificates of another source, %s gives %v", object.GetKind(), rule)
				}
			}
		case object.GetName() == "credence-certificates-secrets" && object.GetKind() == "ValidatingAdmissionPolicy":
			text := fmt.Sprint(object.Object["spec"])
			for _, name := range secrets {
				if !strings.Contains(text, "'"+name+"'") {
					t.Errorf("the policy does not have the Secret %s", name)
				}
			}
			if n := strings.Count(text, "-tls'") + strings.Count(text, "'credence-ca'"); n != len(secrets) {
				t.Errorf("the policy has %d Secrets, want %d", n, len(secrets))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +allowed):\n%s", diff)
	}
}

// caBundle of every webhook is written, and nothing else of an object.
func TestSetBundle(t *testing.T) {
	for _, object := range manifests(t) {
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		changed := object.DeepCopy()
		setBundle(changed, []byte("bundle"))
		if got := bundlesOf(changed); len(got) == 0 || slices.ContainsFunc(got, func(bundle []byte) bool { return !bytes.Equal(bundle, []byte("bundle")) }) {
			t.Errorf("%s: %q", object.GetName(), got)
		}
		for _, part := range trusting(changed) {
			delete(part, bundleField)
		}
		if diff := cmp.Diff(object.Object, changed.Object); diff != "" {
			t.Errorf("%s has changed:\n%s", object.GetName(), diff)
		}
	}
	service := &unstructured.Unstructured{Object: map[string]any{"kind": "APIService", "spec": map[string]any{"group": "g", bundleField: "?"}}}
	if got := bundlesOf(service); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("a caBundle that cannot be read is %q", got)
	}
	setBundle(service, []byte("bundle"))
	if got := slices.Sorted(maps.Keys(service.Object["spec"].(map[string]any))); !slices.Equal(got, []string{bundleField, "group"}) || string(bundlesOf(service)[0]) != "bundle" {
		t.Errorf("an APIService has %v, and %q", got, bundlesOf(service))
	}
}
