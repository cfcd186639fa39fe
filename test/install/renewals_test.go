package install

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// renew has the agent renew a token again and again. The function that it returns ends that, and compares what was written with it.
func (i *installation) renew(t *testing.T) (compare func(*testing.T)) {
	t.Helper()
	secrets := i.client.CoreV1().Secrets("default")
	list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: "authentication.gardener.cloud/purpose"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Secrets with a token: %v", len(list.Items), err)
	}
	name, renewals := list.Items[0].Name, 0
	operation := []byte(`{"metadata": {"annotations": {"gardener.cloud/operation": "renew-workload-identity-token"}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(done)
		before := list.Items[0].Data["token"]
		for asked := begun; ; time.Sleep(50 * time.Millisecond) {
			now, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case err != nil: // kube-apiserver is away
			case now.Annotations["gardener.cloud/operation"] != "":
			case !bytes.Equal(now.Data["token"], before):
				before = now.Data["token"]
				renewals++
				fallthrough
			default:
				// Also where the answer to a request was lost: what it did is seen by then.
				if ctx.Err() != nil {
					return
				}
				asked = time.Now()
				_, _ = secrets.Patch(t.Context(), name, types.StrategicMergePatchType, operation, metav1.PatchOptions{})
			}
			if time.Since(asked) > 2*time.Minute {
				t.Errorf("a renewal was lost: asked for at %s", asked)
				return
			}
		}
	}()
	return func(t *testing.T) {
		cancel()
		<-done
		// kube-apiserver writes the event of a change after others can see the change. An agent that was killed may not have waited for the
		// answer, and then the event is that of an error.
		eventually(t, func(context.Context) error {
			written, failed, requested := i.audited(t, begun, name)
			if written+failed < renewals {
				return fmt.Errorf("%d renewals were written, and %d perhaps, want %d", written, failed, renewals)
			}
			t.Logf("%d renewals: %d were written, %d perhaps, %d tokens requested", renewals, written, failed, requested)
			if written > renewals {
				t.Errorf("%d renewals were written, want %d", written, renewals)
			}
			return nil
		})
	}
}

// audited counts what the agent has done since a time: how often it wrote a Secret, perhaps wrote it, and requested a token.
func (i *installation) audited(t *testing.T, since time.Time, secret string) (written, failed, requested int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(i.folder, "audit*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("audit logs: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var event auditv1.Event
			if !bytes.Contains(line, []byte("credence-agent")) || json.Unmarshal(line, &event) != nil || event.ObjectRef == nil || event.ResponseStatus == nil {
				continue
			}
			if event.User.Username != "system:serviceaccount:credence-system:credence-agent" || event.RequestReceivedTimestamp.Time.Before(since) {
				continue
			}
			wrote, code := event.ObjectRef.Resource == "secrets" && event.ObjectRef.Name == secret && (event.Verb == "patch" || event.Verb == "update"), event.ResponseStatus.Code
			switch {
			case wrote && code < 300:
				written++
			case wrote && code != http.StatusConflict:
				failed++
			case code >= 300:
			case event.ObjectRef.Resource == "workloadidentities" && event.ObjectRef.Subresource == "token" && event.Verb == "create":
				requested++
			}
		}
	}
	return written, failed, requested
}
