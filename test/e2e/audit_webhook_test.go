package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// With the arguments that the chart's audit.webhookSecret sets, events leave the API server: the one of a token is found by its jti at the
// collector, which the kubeconfig of the Secret names, and in no file.
func TestPlaneAuditLeavesByWebhook(t *testing.T) {
	withPlane(t)
	var mu sync.Mutex
	found := map[string]auditv1.Event{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list auditv1.EventList
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, each := range list.Items {
			if jti := each.Annotations["token.authentication.gardener.cloud/jti"]; jti != "" {
				found[jti] = each
			}
		}
	}))
	t.Cleanup(collector.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}], "clusters": [{"name": "c", "cluster": {"server": %q}}]}`, collector.URL)
	must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	p := newPlane(t, "--arg", "apiserver=--audit-log-path=", "--arg", "apiserver=--audit-webhook-config-file="+kubeconfig, "--arg", "apiserver=--audit-webhook-batch-max-wait=1s")
	p.must(t, `{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "metadata": {"name": "audited", "namespace": "default"}, "spec": {"audiences": ["a"], "targetSystem": {"type": "generic"}}}`,
		"kubectl", "create", "-f", "-")
	_, c := claims(t, strings.TrimSpace(p.must(t, "", "credence", "token", "create", "audited")))
	jti := c["jti"].(string)
	eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		event, ok := found[jti]
		if !ok {
			return fmt.Errorf("the collector has no event of %s, and %d others", jti, len(found))
		}
		if event.User.Username != "credence-admin" || event.Level != auditv1.LevelMetadata || event.ResponseObject != nil {
			return fatal{fmt.Errorf("the event is %+v", event)}
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(p.Dir, "apiserver-audit.log")); !os.IsNotExist(err) {
		t.Errorf("the log is in a file, too: %v", err)
	}
}
