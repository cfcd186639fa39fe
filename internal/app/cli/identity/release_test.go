package identity

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/test/testkit"
)

// Just after a deletion the server may not show it yet, and writes the condition while the identity is released.
func TestReleaseJustAfterTheDeletion(t *testing.T) {
	var reads, writes int
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wi := v1alpha1.WorkloadIdentity{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity"}, ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "shop", Finalizers: []string{v1alpha1.FinalizerBindings}}}
		var answer any = &wi
		switch r.Method {
		case http.MethodGet:
			if reads++; reads > 1 {
				wi.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
		case http.MethodPut:
			if writes++; writes == 1 {
				conflict := apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), "held", io.EOF).Status()
				w.WriteHeader(int(conflict.Code))
				answer = conflict
			}
		}
		testkit.Expect(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	testkit.Must(t, os.WriteFile(authority, (&testkit.Certificate{Certificate: server.Certificate()}).PEM(), 0o600))

	var out bytes.Buffer
	kube := connection.New()
	*kube.Config.APIServer, *kube.Config.CAFile = server.URL, authority
	cmd := New(screen.New(genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, nil, nil), kube)
	kube.AddFlags(cmd.PersistentFlags())
	cmd.SetArgs([]string{"release", "held", "--namespace", "shop", "--force"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != "WorkloadIdentity shop/held is released\n" || reads != 3 || writes != 2 {
		t.Errorf("%v, %q after %d reads and %d writes", err, out.String(), reads, writes)
	}
}
