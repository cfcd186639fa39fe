package cluster

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PointWebhooks makes an admission webhook configuration name a port of this machine where it names a Service, and the
// authority of the certificate that is shown there. Other objects stay as they are.
func PointWebhooks(object *unstructured.Unstructured, port int, authority []byte) error {
	switch object.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
	default:
		return nil
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("read webhooks of %s: %w", object.GetName(), err)
	}
	for _, each := range webhooks {
		webhook, ok := each.(map[string]any)
		if !ok {
			return fmt.Errorf("read webhooks of %s: one is a %T", object.GetName(), each)
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil || !found {
			return fmt.Errorf("read webhooks of %s: one names no path of a Service", object.GetName())
		}
		webhook["clientConfig"] = map[string]any{
			"url":      fmt.Sprintf("https://127.0.0.1:%d%s", port, path),
			"caBundle": base64.StdEncoding.EncodeToString(authority),
		}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}
