package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/credence-id/credence/deploy"
)

const (
	certificatesUser = "system:serviceaccount:credence-system:credence-certificates"
	installation     = "credence-system"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// objects is a client for objects of any kind.
func (p plane) objects(t *testing.T, as string, groups ...string) dynamic.Interface {
	t.Helper()
	config := p.config(t)
	if as != "" {
		config = p.as(t, as, groups...)
	}
	client := need(dynamic.NewForConfig(config))(t)
	return client
}

// install applies what belongs to options, and takes it away when the test ends.
func (p plane) install(t *testing.T, options ...deploy.Option) {
	t.Helper()
	chosen := need(deploy.Manifests(options...))(t)
	base := need(deploy.Manifests())(t)
	client := p.objects(t, "")
	for _, object := range chosen[len(base):] {
		plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		resource := dynamic.ResourceInterface(client.Resource(plural))
		if namespace := object.GetNamespace(); namespace != "" {
			resource = client.Resource(plural).Namespace(namespace)
		}
		must(t, errOf(resource.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "e2e", Force: true})))
		t.Cleanup(func() {
			if err := resource.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}

// TestWhatTheKeeperOfCertificatesMayWrite takes the part of a credence-server certificates that an attacker has taken over.
func TestWhatTheKeeperOfCertificatesMayWrite(t *testing.T) {
	inTurn(t)
	shared.install(t, deploy.Registration, deploy.Certificates)
	root, keeper := shared.client(t), shared.clientAs(t, certificatesUser, agentGroup, agentGroup+":credence-system")
	secrets := keeper.CoreV1().Secrets(installation)
	ca := need(os.ReadFile(shared.CAFile))(t)
	// The policies are in force when they refuse; RBAC allows it.
	const others = "no others"
	foreign := func() error {
		_, err := secrets.Create(t.Context(), tlsSecret("e2e-other"), dryRun)
		return err
	}
	webhooks := keeper.AdmissionregistrationV1().MutatingWebhookConfigurations()
	eventually(t, func() error {
		object, err := webhooks.Get(t.Context(), "credence-webhook", metav1.GetOptions{})
		if err == nil {
			object.Labels = map[string]string{"x": "y"}
			_, err = webhooks.Update(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		for what, err := range map[string]error{"Secrets": foreign(), "webhook configurations": err} {
			if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return fmt.Errorf("the policy of %s does not decide yet: %w", what, err)
			}
		}
		return nil
	})

	t.Run("Secrets", func(t *testing.T) {
		refused(t, "a Secret of another name", foreign(), others)
		_, err := secrets.Create(t.Context(), tlsSecret("credence-agent-tls"), dryRun)
		allowed(t, "its own Secret", err)
		for what, change := range map[string]func(*corev1.Secret){
			"a generated name": func(s *corev1.Secret) { s.Name, s.GenerateName = "", "credence-agent-tls" },
			"the ring of keys": func(s *corev1.Secret) { s.Name = "credence-keys" },
			"a label":          func(s *corev1.Secret) { s.Labels["x"] = "y" },
			"an annotation":    func(s *corev1.Secret) { s.Annotations = map[string]string{"x": "y"} },
			"a finalizer":      func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example.com/x"} },
			"an immutable one": func(s *corev1.Secret) { s.Immutable = new(true) },
			"another key":      func(s *corev1.Secret) { s.Data["token"] = []byte("x") },
			"an opaque one":    func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
			"an account's token": func(s *corev1.Secret) {
				s.Type, s.Data = corev1.SecretTypeServiceAccountToken, nil
				s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "credence-agent"}
			},
			"an owner": func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "u"}}
			},
		} {
			secret := tlsSecret("credence-agent-tls")
			change(secret)
			_, err := secrets.Create(t.Context(), secret, dryRun)
			policy := "credence-certificates"
			if secret.Name == "credence-keys" {
				policy = "credence-" // that of the keys refuses it as well
			}
			refused(t, what, err, policy)
		}
		_, err = keeper.CoreV1().Secrets("default").Create(t.Context(), tlsSecret("credence-agent-tls"), dryRun)
		refused(t, "a Secret of another namespace", err)
		_, err = secrets.Get(t.Context(), "credence-keys", metav1.GetOptions{})
		refused(t, "reading the ring of keys", err)
		_, err = secrets.List(t.Context(), metav1.ListOptions{})
		refused(t, "listing Secrets", err)
		refused(t, "deleting a Secret", secrets.Delete(t.Context(), "credence-keys", metav1.DeleteOptions{}))

		must(t, errOf(root.CoreV1().Secrets(installation).Create(t.Context(), tlsSecret("credence-binder-tls"), metav1.CreateOptions{})))
		t.Cleanup(func() {
			_ = root.CoreV1().Secrets(installation).Delete(context.WithoutCancel(t.Context()), "credence-binder-tls", metav1.DeleteOptions{})
		})
		update := func(change func(*corev1.Secret)) error {
			secret, err := secrets.Get(t.Context(), "credence-binder-tls", metav1.GetOptions{})
			must(t, err)
			change(secret)
			_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		allowed(t, "another certificate", update(func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") }))
		refused(t, "another label", update(func(s *corev1.Secret) { s.Labels["x"] = "y" }), "nothing else")
		refused(t, "an annotation, later", update(func(s *corev1.Secret) { s.Annotations = map[string]string{"x": "y"} }), "nothing else")
		refused(t, "another key, later", update(func(s *corev1.Secret) { s.Data["x"] = []byte("y") }), others)
		refused(t, "immutability, later", update(func(s *corev1.Secret) { s.Immutable = new(true) }), others)
		refused(t, "a finalizer, later", update(func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example.com/x"} }), "nothing else")
	})

	t.Run("APIServices", func(t *testing.T) {
		services := shared.objects(t, certificatesUser, agentGroup).Resource(apiServices)
		const name = "v1alpha1.authentication.gardener.cloud"
		update := func(change func(object, spec map[string]any)) error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its status is written whenever the API server becomes available
				object, err := services.Get(t.Context(), name, metav1.GetOptions{})
				must(t, err)
				change(object.Object, object.Object["spec"].(map[string]any))
				_, err = services.Update(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
		}
		allowed(t, "another caBundle", update(func(_, spec map[string]any) {
			spec["caBundle"] = base64.StdEncoding.EncodeToString(slices.Concat(ca, ca))
		}))
		for what, change := range map[string]func(object, spec map[string]any){
			"another Service":       func(_, spec map[string]any) { spec["service"].(map[string]any)["name"] = "other" },
			"another namespace":     func(_, spec map[string]any) { spec["service"].(map[string]any)["namespace"] = "default" },
			"another port":          func(_, spec map[string]any) { spec["service"].(map[string]any)["port"] = int64(1) },
			"no Service":            func(_, spec map[string]any) { delete(spec, "service"); delete(spec, "caBundle") },
			"no verification":       func(_, spec map[string]any) { spec["insecureSkipTLSVerify"] = true; delete(spec, "caBundle") },
			"another priority":      func(_, spec map[string]any) { spec["versionPriority"] = int64(1) },
			"another group's order": func(_, spec map[string]any) { spec["groupPriorityMinimum"] = int64(20000) },
			"a label":               func(object, _ map[string]any) { set(object, "y", "metadata", "labels", "x") },
			"an annotation":         func(object, _ map[string]any) { set(object, "y", "metadata", "annotations", "x") },
			"a finalizer":           func(object, _ map[string]any) { set(object, []any{"e2e.example.com/x"}, "metadata", "finalizers") },
		} {
			refused(t, what, update(change), "nothing else")
		}
		for _, other := range []string{"v1.apps", "v1."} {
			_, err := services.Get(t.Context(), other, metav1.GetOptions{})
			refused(t, "APIService "+other, err)
		}
		create := func(group, version, service, namespace string) error {
			_, err := services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + group},
				"spec": map[string]any{"group": group, "version": version, "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
					"service": map[string]any{"name": service, "namespace": namespace}},
			}}, dryRun)
			return err
		}
		refused(t, "an APIService of another group", create("e2e.example.com", "v1alpha1", "credence-apiserver", "credence-system"), "credence-certificates may make")
		refused(t, "an APIService of another version", create("identity.credence.dev", "v1", "credence-apiserver", "credence-system"), "credence-certificates may make")
		refused(t, "an APIService of another Service", create("identity.credence.dev", "v1alpha1", "x", "credence-system"), "credence-certificates may make")
		refused(t, "an APIService of another namespace", create("identity.credence.dev", "v1alpha1", "credence-apiserver", "default"), "credence-certificates may make")
		if err := create("identity.credence.dev", "v1alpha1", "credence-apiserver", "credence-system"); !apierrors.IsAlreadyExists(err) {
			t.Errorf("the APIService that it may make: %v, want that it exists", err)
		}
		// TestInstallOnANode deletes that namespace.
		refused(t, "deleting an APIService", services.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "once the namespace credence-system is being deleted")
	})

	t.Run("webhooks", func(t *testing.T) {
		configurations := webhooks
		update := func(change func(*registrationv1.MutatingWebhookConfiguration)) error {
			configuration, err := configurations.Get(t.Context(), "credence-webhook", metav1.GetOptions{})
			must(t, err)
			change(configuration)
			_, err = configurations.Update(t.Context(), configuration, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		type configuration = registrationv1.MutatingWebhookConfiguration
		secrets := func(c *configuration) int {
			return slices.IndexFunc(c.Webhooks, func(w registrationv1.MutatingWebhook) bool {
				return w.ObjectSelector != nil && len(w.MatchConditions) > 0
			})
		}
		allowed(t, "another caBundle", update(func(c *configuration) { c.Webhooks[0].ClientConfig.CABundle = slices.Concat(ca, ca) }))
		for what, change := range map[string]func(*configuration){
			"another URL": func(c *configuration) { c.Webhooks[0].ClientConfig.URL = new("https://192.0.2.1/pods") },
			"a Service": func(c *configuration) {
				c.Webhooks[0].ClientConfig.URL, c.Webhooks[0].ClientConfig.Service = nil, &registrationv1.ServiceReference{Namespace: "default", Name: "x"}
			},
			"another rule":      func(c *configuration) { c.Webhooks[0].Rules[0].Resources = []string{"*"} },
			"another policy":    func(c *configuration) { c.Webhooks[0].FailurePolicy = new(registrationv1.Ignore) },
			"other namespaces":  func(c *configuration) { c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{} },
			"other objects":     func(c *configuration) { c.Webhooks[secrets(c)].ObjectSelector = &metav1.LabelSelector{} },
			"another condition": func(c *configuration) { c.Webhooks[secrets(c)].MatchConditions[0].Expression = "true" },
			"another timeout":   func(c *configuration) { c.Webhooks[0].TimeoutSeconds = new(int32(1)) },
			"one less":          func(c *configuration) { c.Webhooks = c.Webhooks[:1] },
			"one more": func(c *configuration) {
				more := *c.Webhooks[0].DeepCopy()
				more.Name = "more.identity.credence.dev"
				c.Webhooks = append(c.Webhooks, more)
			},
			"another name": func(c *configuration) { c.Webhooks[0].Name = "other.identity.credence.dev" },
			"a label":      func(c *configuration) { c.Labels = map[string]string{"x": "y"} },
			"an annotation": func(c *configuration) {
				c.Annotations = map[string]string{"identity.credence.dev/review-path-since": "y"}
			},
			"a finalizer": func(c *configuration) { c.Finalizers = []string{"e2e.example.com/x"} },
			"another's name": func(c *configuration) {
				slices.Reverse(c.Webhooks)
				c.Webhooks[0].Name, c.Webhooks[1].Name = c.Webhooks[1].Name, c.Webhooks[0].Name
			},
		} {
			refused(t, what, update(change), "nothing else")
		}
		_, err := configurations.Create(t.Context(), &configuration{ObjectMeta: metav1.ObjectMeta{Name: "e2e"}}, dryRun)
		refused(t, "a new configuration", err)
		refused(t, "deleting a configuration", configurations.Delete(t.Context(), "credence-webhook", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
		_, err = configurations.Patch(t.Context(), "credence-webhook", types.MergePatchType, []byte(`{"webhooks":[]}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		refused(t, "a patch", err)
	})

	t.Run("anything else", func(t *testing.T) {
		_, err := keeper.RbacV1().RoleBindings(installation).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "e2e"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "credence:keys"}}, dryRun)
		refused(t, "a RoleBinding", err)
		_, err = keeper.CoreV1().Pods(installation).List(t.Context(), metav1.ListOptions{})
		refused(t, "listing pods", err)
		_, err = keeper.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(), metav1.ListOptions{})
		refused(t, "listing policies", err)
	})
}

// tlsSecret is a Secret as the keeper of certificates makes it.
func tlsSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "credence-certificates"}},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil},
	}
}

func set(object map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(object, value, path...); err != nil {
		panic(err)
	}
}
