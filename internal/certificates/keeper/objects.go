package keeper

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reference names an object of the cluster.
type reference struct {
	resource  schema.GroupVersionResource
	namespace string // empty: the cluster
	name      string
}

func (r reference) String() string { return r.resource.Resource + " " + r.name }

// callers are the objects by which the API server calls Credence, and trusts its certificates. One that is missing is no fault: its part is
// not installed.
func callers() []reference {
	var all []reference
	add := func(group, resource string, names ...string) {
		for _, name := range names {
			all = append(all, reference{resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, name: name})
		}
	}
	add("apiregistration.k8s.io", "apiservices", "v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev")
	add("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "credence-webhook", "zz-credence-gmsa", "zz-credence-gmsa-annotations")
	add("admissionregistration.k8s.io", "validatingwebhookconfigurations", "credence-finished-pods", "credence-templates", "credence-quotas", "credence-gmsa",
		"credence-gmsa-annotations", "credence-gmsa-require-user")
	return all
}

const bundleField = "caBundle"

// trusting returns the parts of an object that have the field caBundle: the spec of an APIService, clientConfig of each webhook.
func trusting(object *unstructured.Unstructured) []map[string]any {
	if spec, ok := object.Object["spec"].(map[string]any); ok {
		return []map[string]any{spec}
	}
	var all []map[string]any
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, each := range webhooks {
		webhook, _ := each.(map[string]any)
		if config, ok := webhook["clientConfig"].(map[string]any); ok {
			all = append(all, config)
		}
	}
	return all
}

func bundlesOf(object *unstructured.Unstructured) [][]byte {
	var all [][]byte
	for _, part := range trusting(object) {
		text, _ := part[bundleField].(string)
		bundle, _ := base64.StdEncoding.DecodeString(text) // one that cannot be read is replaced
		all = append(all, bundle)
	}
	return all
}

func setBundle(object *unstructured.Unstructured, bundle []byte) {
	for _, part := range trusting(object) {
		part[bundleField] = base64.StdEncoding.EncodeToString(bundle)
	}
}
