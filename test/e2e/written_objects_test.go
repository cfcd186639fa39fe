package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/credence-id/credence/deploy"
)

// written is an object that programs write.
type written struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	// parts are what programs write of it.
	parts []string
	// whole is set where programs make the object, too.
	whole bool
	// good reports what is wrong with it, after an attempt at a time.
	good func(now *unstructured.Unstructured, since time.Time) error
}

// TestPlaneWrittenObjects: tools replace, empty and delete the objects that programs write, or put an old copy there. Each attempt is refused, or
// the object comes back. TestPlaneKeysComeBack and TestPlaneRecordsOfOthers do so with the keys and the key of records, and TestStorageInTheCluster with records.
func TestPlaneWrittenObjects(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	p.install(t, deploy.Registration, deploy.Certificates)
	p.startCertificates(t, p.kubeconfigOf(t, "credence-certificates"), "--certificate-lifetime", "1h", "--authority-lifetime", "24h", "--overlap", "10m")
	secrets := p.client(t).CoreV1().Secrets(installation)
	p.mount(t, secrets)
	p.awaitServed(t, secrets, "apiserver", "")
	p.awaitServed(t, secrets, "webhook", "")
	client := p.objects(t, "")
	for _, object := range writtenObjects(t, p) {
		of := client.Resource(object.resource).Namespace(object.namespace)
		t.Run(object.resource.Resource+"/"+object.name, func(t *testing.T) {
			t.Parallel()
			good := func(after string) {
				t.Helper()
				since := time.Now()
				eventually(t, func() error {
					now, err := of.Get(t.Context(), object.name, metav1.GetOptions{})
					if err == nil {
						err = object.good(now, since)
					}
					if err != nil {
						return fmt.Errorf("after %s: %w", after, err)
					}
					return nil
				})
			}
			good("the start")
			before := need(of.Get(t.Context(), object.name, metav1.GetOptions{}))(t)
			for _, attack := range attacks(object, before) {
				if err := attack.do(t, of); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
					t.Errorf("%s: %v", attack.name, err)
				}
				good(attack.name)
			}
		})
	}
}

// attack is one attempt of a tool.
type attack struct {
	name string
	do   func(t *testing.T, of dynamic.ResourceInterface) error
}

// attacks are those on an object, which was seen before.
func attacks(object written, before *unstructured.Unstructured) []attack {
	without := func(o *unstructured.Unstructured) {
		for _, part := range object.parts {
			unstructured.RemoveNestedField(o.Object, part)
		}
		for _, webhook := range webhooksOf(o) {
			unstructured.RemoveNestedField(webhook, "clientConfig", "caBundle")
		}
		if spec, ok := o.Object["spec"].(map[string]any); ok && o.GetKind() == "APIService" {
			delete(spec, "caBundle")
		}
	}
	update := func(t *testing.T, of dynamic.ResourceInterface, change func(*unstructured.Unstructured)) error {
		t.Helper()
		var last error
		for range 10 {
			now, err := of.Get(t.Context(), object.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(now)
			if _, last = of.Update(t.Context(), now, metav1.UpdateOptions{}); !apierrors.IsConflict(last) {
				return last
			}
		}
		return last
	}
	all := []attack{
		{"a replace by a manifest", func(t *testing.T, of dynamic.ResourceInterface) error {
			manifest := before.DeepCopy()
			manifest.SetResourceVersion("")
			manifest.SetAnnotations(nil)
			without(manifest)
			return update(t, of, func(o *unstructured.Unstructured) {
				version := o.GetResourceVersion()
				o.Object = manifest.DeepCopy().Object
				o.SetResourceVersion(version)
			})
		}},
		{"emptying it", func(t *testing.T, of dynamic.ResourceInterface) error { return update(t, of, without) }},
		{"an old copy", func(t *testing.T, of dynamic.ResourceInterface) error {
			return update(t, of, func(o *unstructured.Unstructured) {
				for _, part := range object.parts {
					if value, found := before.Object[part]; found {
						o.Object[part] = value
					}
				}
			})
		}},
	}
	if object.whole {
		all = append(all, attack{"its deletion", func(t *testing.T, of dynamic.ResourceInterface) error {
			return of.Delete(t.Context(), object.name, metav1.DeleteOptions{})
		}})
	}
	return all
}

func webhooksOf(o *unstructured.Unstructured) (all []map[string]any) {
	webhooks, _, _ := unstructured.NestedFieldNoCopy(o.Object, "webhooks") // objects of other kinds have none
	list, _ := webhooks.([]any)
	for _, webhook := range list {
		all = append(all, webhook.(map[string]any))
	}
	return all
}

// writtenObjects are those of a plane with certificates of an installation.
func writtenObjects(t *testing.T, p plane) []written {
	t.Helper()
	documents := need(p.client(t).CoreV1().ConfigMaps(installation).Get(t.Context(), "credence-discovery", metav1.GetOptions{}))(t)
	all := []written{{
		schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, installation, "credence-discovery", []string{"data"}, true,
		func(o *unstructured.Unstructured, _ time.Time) error {
			data, _, err := unstructured.NestedStringMap(o.Object, "data")
			if err != nil || !maps.Equal(data, documents.Data) {
				return fmt.Errorf("the documents are %v: %w", slices.Sorted(maps.Keys(data)), err)
			}
			return nil
		},
	}}
	for _, name := range []string{"credence-controller", "credence-agent", "credence-profiles", "credence-certificates"} {
		all = append(all, written{
			schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, installation, name, []string{"spec"}, true,
			func(o *unstructured.Unstructured, since time.Time) error {
				holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity") // "" if it is of another type
				renewed, _, _ := unstructured.NestedString(o.Object, "spec", "renewTime")
				at, err := time.Parse(time.RFC3339, renewed)
				if holder == "" || err != nil || at.Before(since) {
					return fmt.Errorf("held by %q, renewed at %q", holder, renewed)
				}
				return nil
			},
		})
	}
	for _, name := range []string{"credence-ca", "credence-agent-tls"} {
		all = append(all, written{
			schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, installation, name, []string{"data"}, true,
			func(o *unstructured.Unstructured, _ time.Time) error {
				data, _, err := unstructured.NestedStringMap(o.Object, "data")
				if err != nil || data["tls.key"] == "" || data["tls.crt"] == "" || data["ca.crt"] == "" {
					return fmt.Errorf("it has %v: %w", slices.Sorted(maps.Keys(data)), err)
				}
				return nil
			},
		})
	}
	trusted := func(o *unstructured.Unstructured, _ time.Time) error {
		for _, webhook := range webhooksOf(o) {
			if bundle, _, err := unstructured.NestedString(webhook, "clientConfig", "caBundle"); bundle == "" || err != nil {
				return fmt.Errorf("webhook %v has no caBundle: %w", webhook["name"], err)
			}
		}
		return nil
	}
	for name, resource := range map[string]string{
		"credence-webhook": "mutatingwebhookconfigurations", "credence-finished-pods": "validatingwebhookconfigurations", "credence-templates": "validatingwebhookconfigurations",
	} {
		all = append(all, written{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}, "", name, nil, false, trusted})
	}
	// One that is deleted is made again where the API server is reached by its Service, as it is not from here.
	for _, name := range []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"} {
		all = append(all, written{
			schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, "", name, nil, false,
			func(o *unstructured.Unstructured, _ time.Time) error {
				text, err := json.Marshal(o.Object["status"])
				if bundle, _, _ := unstructured.NestedString(o.Object, "spec", "caBundle"); bundle == "" || err != nil {
					return fmt.Errorf("it has no caBundle; status %s: %w", text, err)
				}
				return nil
			},
		})
	}
	return all
}
