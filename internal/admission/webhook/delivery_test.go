package webhook_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/webhook"
)

// The label of the namespace decides how tokens come to a pod, and without one the installation.
func TestDelivery(t *testing.T) {
	for name, c := range map[string]struct {
		byDefault, label string
		want             string
	}{
		"nothing chosen":              {want: `"secret":`},
		"the installation has secret": {byDefault: "secret", want: `"secret":`},
		"the installation has csi":    {byDefault: "csi", want: `"csi":`},
		"the namespace has csi":       {label: "csi", want: `"csi":`},
		"the namespace has secret":    {byDefault: "csi", label: "secret", want: `"secret":`},
		"another value":               {label: "vault", want: "has the value \"vault\", and there are secret and csi"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			cluster.delivery = c.byDefault
			if c.label != "" {
				cluster.labels = map[string]string{v1alpha1.LabelNamespaceDelivery: c.label}
			}
			handler := cluster.handler()
			response := ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON})
			got := applied(t, podJSON, response)
			if response.Result != nil {
				got = response.Result.Message
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
			// The kubelet waits for the driver; the agent would never take the gate off.
			if gated := strings.Contains(got, v1alpha1.GateToken); gated != (c.want == `"secret":`) {
				t.Errorf("gated %v: %s", gated, got)
			}
			template := `{"kind":"ReplicaSet","metadata":{"name":"rs","namespace":"orchard"},"spec":{"template":{"spec":{"serviceAccountName":"app","containers":[{"name":"main","image":"picker"}]}}}}`
			warnings := strings.Join(ask(t, handler, webhook.TemplatesPath, sent{resource: "replicasets", object: template}).Warnings, " ")
			if refused := response.Result != nil; refused != strings.Contains(warnings, c.want) || !refused && warnings != "" {
				t.Errorf("of its workload: %q", warnings)
			}
		})
	}
}

// In namespaces without the label, which have a webhook of their own, the installation decides, and no namespace is read.
func TestDeliveryByDefault(t *testing.T) {
	for byDefault, want := range map[string]string{"": `"secret":`, v1alpha1.DeliverySecret: `"secret":`, v1alpha1.DeliveryCSI: `"csi":`} {
		cluster := newCluster()
		cluster.delivery = byDefault
		cluster.outages["namespaces"] = errors.New("it is read")
		if got := applied(t, podJSON, ask(t, cluster.handler(), webhook.DefaultPodsPath, sent{resource: "pods", object: podJSON})); !strings.Contains(got, want) {
			t.Errorf("--delivery=%s: %s, want %s", byDefault, got, want)
		}
	}
}

// Without the namespace nothing is decided.
func TestDeliveryUnknown(t *testing.T) {
	cluster := newCluster()
	cluster.outages["namespaces"] = errors.New("etcd is away")
	if w := post(cluster.handler(), webhook.PodsPath, sent{resource: "pods", object: podJSON}.body(t)); w.Code == http.StatusOK && !strings.Contains(w.Body.String(), `"code":500`) {
		t.Errorf("HTTP %d: %s", w.Code, w.Body)
	}
}

// Pods without identities need no more than their account.
func TestDeliveryOfPodsWithoutIdentities(t *testing.T) {
	cluster := newCluster()
	cluster.accounts["orchard/app"].Annotations = nil
	cluster.outages["namespaces"] = errors.New("etcd is away")
	if response := ask(t, cluster.handler(), webhook.PodsPath, sent{resource: "pods", object: podJSON}); !response.Allowed || len(response.Patch) > 0 {
		t.Errorf("the answer is %+v", response)
	}
}
