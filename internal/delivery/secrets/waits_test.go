package secrets_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

func TestRefusalsBackOff(t *testing.T) {
	w := requesting(t)
	w.Down = apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "banana", errors.New("no"))
	var waits []time.Duration
	for range 12 {
		wait := w.Look("ns/s")
		waits = append(waits, wait)
		if early := w.Look("ns/s"); early != wait {
			t.Errorf("looked at early it waits %s more, want %s", early, wait)
		}
		w.Pass(wait)
	}
	if waits[0] != 750*time.Millisecond || waits[1] != 1500*time.Millisecond || waits[11] != 225*time.Second {
		t.Errorf("waits %v", waits)
	}
	if event := w.Event(); !strings.Contains(event, "TokenRequestRefused") || !strings.Contains(event, "credence:agent:identities") {
		t.Errorf("the Event is %q", event)
	}
	// Other inputs are tried at once.
	w.Down = nil
	w.Identities["ns/banana"].Spec.Audiences = []string{"new"}
	w.Look("ns/s")
	if len(w.Tokens) != 1 {
		t.Error("not tried again at once after the inputs changed")
	}
}

// A writer as frequent as the agent must not make it request a token each time.
func TestQuickRenewalsSlowDown(t *testing.T) {
	w := requesting(t)
	for range 600 { // ten minutes
		w.Look("ns/s")
		w.Edit("ns/s", func(s *corev1.Secret) { s.Data["config"] = []byte("x: 1\n") })
		w.Pass(time.Second)
	}
	if n := len(w.Tokens); n < 3 || n > 14 {
		t.Errorf("%d tokens were requested in ten minutes, want a few", n)
	}
}

func TestQuickMarksSlowDown(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "gone"))
	marks := 0
	for range 600 { // ten minutes
		w.Look("ns/s")
		w.Edit("ns/s", func(s *corev1.Secret) {
			if _, marked := s.Annotations[v1alpha1.AnnotationOrphaned]; marked {
				marks++
				delete(s.Annotations, v1alpha1.AnnotationOrphaned)
			}
		})
		w.Pass(time.Second)
	}
	if marks < 3 || marks > 14 {
		t.Errorf("marked %d times in ten minutes, want a few", marks)
	}
}

func TestTokensAreRenewedByTheIssuersClock(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"), deliverytest.LabeledSecret("ns", "s2", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Ahead = 3 * time.Hour
	w.Look("ns/s")
	w.Look("ns/s2")
	for range 20 {
		w.Pass(time.Minute)
		w.Look("ns/s")
		w.Look("ns/s2")
	}
	if len(w.Tokens) != 2 {
		t.Errorf("%d tokens were requested in 20 minutes, want 2: by the issuer's clock they are fresh", len(w.Tokens))
	}
	w.Pass(25 * time.Minute)
	w.Look("ns/s")
	if len(w.Tokens) != 3 {
		t.Errorf("%d tokens were requested, want a renewal by the issuer's clock", len(w.Tokens))
	}
}

func TestDeletedSecretIsForgotten(t *testing.T) {
	w := requesting(t)
	w.Down = errors.New("connection refused")
	w.Look("ns/s")
	w.Down = nil
	w.Look("ns/s")
	w.Delete("ns/s")
	w.Look("ns/s")
	if _, n := w.Secrets.Ledger.Soonest(); n != 0 {
		t.Errorf("%d Secrets are remembered, want none", n)
	}
	if _, waiting := w.Secrets.Outage.Lasts(); waiting != 0 {
		t.Errorf("%d Secrets wait, want none", waiting)
	}
}

// A cache that is behind shows the Secret as it was before its token was written: that is not a reason for a second one.
func TestStaleCacheRenewsNothingTwice(t *testing.T) {
	w := requesting(t)
	before := w.Secret("ns/s")
	w.Look("ns/s")
	w.Secrets.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			before.DeepCopyInto(object.(*corev1.Secret))
			return nil
		},
	})
	for range 3 {
		w.Pass(10 * time.Second)
		if again := w.Look("ns/s"); again != secrets.CacheLag {
			t.Errorf("looks again after %s, want %s", again, secrets.CacheLag)
		}
	}
	w.Secrets.Client = w.Client
	if again := w.Look("ns/s"); len(w.Tokens) != 1 || again != 41*time.Minute+30*time.Second {
		t.Errorf("%d tokens were requested, want 1; looks again after %s", len(w.Tokens), again)
	}
}

// A cluster that was restored from a backup gives older resource versions: its Secrets are renewed all the same.
func TestSecretsOfARestoredClusterAreRenewed(t *testing.T) {
	w := requesting(t)
	w.Look("ns/s")
	w.Secrets.Ledger.Change(types.NamespacedName{Namespace: "ns", Name: "s"}, func(e *secrets.Entry) { e.Version = "1000000" })
	w.Edit("ns/s", func(s *corev1.Secret) { s.Data = nil })
	w.Pass(secrets.LongestLag - time.Second)
	if again := w.Look("ns/s"); again != secrets.CacheLag || len(w.Tokens) != 1 {
		t.Errorf("%d tokens a short while after the write, looks again after %s", len(w.Tokens), again)
	}
	w.Pass(time.Second)
	if w.Look("ns/s"); len(w.Tokens) != 2 || secrets.Stored(w.Secret("ns/s")) == nil {
		t.Errorf("%d tokens were requested, want a second one", len(w.Tokens))
	}
}

// A request that failed in a server is repeated within a minute, however often it has failed.
func TestFailedServerIsAskedWithinAMinute(t *testing.T) {
	w := requesting(t)
	w.Down = apierrors.NewInternalError(errors.New("no review"))
	for range 20 {
		wait := w.Look("ns/s")
		if wait <= 0 || wait > time.Minute {
			t.Fatalf("waits %s", wait)
		}
		w.Pass(wait)
	}
	if n := w.Metric("credence_agent_failures_total", "server_failed"); n != 20 {
		t.Errorf("%g failures of the server, want 20", n)
	}
}

// While nothing can be written, a token is requested once; changed inputs, or a request for a new one, are worth another.
func TestUnwrittenTokenIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*deliverytest.World)
		want      int
	}{
		"nothing changes":  {func(*deliverytest.World) {}, 1},
		"audiences change": {func(w *deliverytest.World) { w.Identities["ns/banana"].Spec.Audiences = []string{"other"} }, 2},
		"a new one is requested": {func(w *deliverytest.World) {
			requestToken(w)
		}, 2},
		"its key is revoked": {func(w *deliverytest.World) { w.RevokedKeys["k1"], w.KeyID = true, "k2" }, 2},
		"it is due itself":   {func(w *deliverytest.World) { w.Pass(45 * time.Minute) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := requesting(t)
			w.Unwritable = errors.New("the webhook does not answer")
			for range 5 {
				w.Pass(w.Look("ns/s"))
			}
			if len(w.Tokens) != 1 {
				t.Errorf("%d tokens were requested while none could be written, want 1", len(w.Tokens))
			}
			test.meanwhile(w)
			w.Unwritable = nil
			for range 10 {
				if wait := w.Look("ns/s"); secrets.Stored(w.Secret("ns/s")) == nil {
					w.Pass(wait)
				}
			}
			token := secrets.Stored(w.Secret("ns/s"))
			if token == nil || len(w.Tokens) != test.want || w.RevokedKeys[token.KeyID] {
				t.Errorf("the Secret has %+v, %d tokens were requested, want %d", token, len(w.Tokens), test.want)
			}
		})
	}
}
