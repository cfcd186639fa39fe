package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/test/testkit"
)

func TestPointWebhooks(t *testing.T) {
	configuration := func(client map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "w"},
			"webhooks": []any{map[string]any{"name": "a.example", "clientConfig": client, "failurePolicy": "Fail"}},
		}}
	}
	object := configuration(map[string]any{"service": map[string]any{"name": "s", "namespace": "n", "path": "/pods"}})
	testkit.Must(t, cluster.PointWebhooks(object, 17449, []byte("PEM")))
	want := configuration(map[string]any{"url": "https://127.0.0.1:17449/pods", "caBundle": "UEVN"})
	if diff := cmp.Diff(want.Object, object.Object); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if err := cluster.PointWebhooks(configuration(map[string]any{"url": "https://elsewhere.example/"}), 1, nil); err == nil {
		t.Error("a webhook of another place was taken for ours")
	}
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "webhooks": []any{"x"}}}
	testkit.Expect(t, cluster.PointWebhooks(other, 1, nil), "another kind of object")
}
