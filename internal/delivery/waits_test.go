package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

func TestRefusalsBackOff(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.down = apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "banana", errors.New("no"))
	var waits []time.Duration
	for range 12 {
		wait := w.look("ns/s")
		waits = append(waits, wait)
		if early := w.look("ns/s"); early != wait {
			t.Errorf("looked at early it waits %s more, want %s", early, wait)
		}
		w.pass(wait)
	}
	if waits[0] != 750*time.Millisecond || waits[1] != 1500*time.Millisecond || waits[11] != 225*time.Second {
		t.Errorf("waits %v", waits)
	}
	if event := w.event(); !strings.Contains(event, "TokenRequestRefused") || !strings.Contains(event, "credence:agent:identities") {
		t.Errorf("the Event is %q", event)
	}
	// Other inputs are tried at once.
	w.down = nil
	w.identities["ns/banana"].Spec.Audiences = []string{"new"}
	w.look("ns/s")
	if len(w.tokens) != 1 {
		t.Error("not tried again at once after the inputs changed")
	}
}

// A writer as frequent as the agent must not make it request a token each time.
func TestQuickRenewalsSlowDown(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	for range 600 { // ten minutes
		w.look("ns/s")
		w.edit("ns/s", func(s *corev1.Secret) { s.Data["config"] = []byte("x: 1\n") })
		w.pass(time.Second)
	}
	if n := len(w.tokens); n < 3 || n > 14 {
		t.Errorf("%d tokens were requested in ten minutes, want a few", n)
	}
}

func TestQuickMarksSlowDown(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "gone"))
	marks := 0
	for range 600 { // ten minutes
		w.look("ns/s")
		w.edit("ns/s", func(s *corev1.Secret) {
			if _, marked := s.Annotations[v1alpha1.AnnotationOrphaned]; marked {
				marks++
				delete(s.Annotations, v1alpha1.AnnotationOrphaned)
			}
		})
		w.pass(time.Second)
	}
	if marks < 3 || marks > 14 {
		t.Errorf("marked %d times in ten minutes, want a few", marks)
	}
}

func TestIssuerWithAnotherClock(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"), labelled("ns", "s2", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.ahead = 3 * time.Hour
	w.look("ns/s")
	w.look("ns/s2")
	for range 20 {
		w.pass(time.Minute)
		w.look("ns/s")
		w.look("ns/s2")
	}
	if len(w.tokens) != 2 {
		t.Errorf("%d tokens were requested in 20 minutes, want 2: by the issuer's clock they are fresh", len(w.tokens))
	}
	w.pass(25 * time.Minute)
	w.look("ns/s")
	if len(w.tokens) != 3 {
		t.Errorf("%d tokens were requested, want a renewal by the issuer's clock", len(w.tokens))
	}
}

func TestSecretDeletedLeavesNothing(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.down = errors.New("connection refused")
	w.look("ns/s")
	w.down = nil
	w.look("ns/s")
	if err := w.client.Delete(context.Background(), w.secret("ns/s")); err != nil {
		t.Fatal(err)
	}
	w.look("ns/s")
	if _, n := w.requestor.Ledger.Soonest(); n != 0 {
		t.Errorf("%d Secrets are remembered, want none", n)
	}
	if _, waiting := w.requestor.Outage.Lasts(); waiting != 0 {
		t.Errorf("%d Secrets wait, want none", waiting)
	}
}

// A cache that is behind shows the Secret as it was before its token was written: that is not a reason for a second one.
func TestACacheThatIsBehindRenewsNothingTwice(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	before := w.secret("ns/s")
	w.look("ns/s")
	w.shown = before
	for range 3 {
		w.pass(10 * time.Second)
		if again := w.look("ns/s"); again != secrets.CacheLag {
			t.Errorf("looks again after %s, want %s", again, secrets.CacheLag)
		}
	}
	w.shown = nil
	if again := w.look("ns/s"); len(w.tokens) != 1 || again != 41*time.Minute+30*time.Second {
		t.Errorf("%d tokens were requested, want 1; looks again after %s", len(w.tokens), again)
	}
}

// A cluster that was restored from a backup gives older resource versions: its Secrets are renewed all the same.
func TestARestoredClusterIsServed(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.look("ns/s")
	w.requestor.Ledger.Change(types.NamespacedName{Namespace: "ns", Name: "s"}, func(e *secrets.Entry) { e.Version = "1000000" })
	w.edit("ns/s", func(s *corev1.Secret) { s.Data = nil })
	w.pass(secrets.LongestLag - time.Second)
	if again := w.look("ns/s"); again != secrets.CacheLag || len(w.tokens) != 1 {
		t.Errorf("%d tokens a short while after the write, looks again after %s", len(w.tokens), again)
	}
	w.pass(time.Second)
	if w.look("ns/s"); len(w.tokens) != 2 || secrets.Stored(w.secret("ns/s")) == nil {
		t.Errorf("%d tokens were requested, want a second one", len(w.tokens))
	}
}

// A timer may stand still for a night: a wait is never longer than ten minutes.
func TestNobodySleepsLong(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second, time.Hour: 10 * time.Minute} {
		inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: asked}, nil
		})
		if got, err := (wakeful{inner}).Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != want {
			t.Errorf("due after %s it sleeps %s, %v, want %s", asked, got.RequeueAfter, err, want)
		}
	}
}

// A request that failed in a server is repeated within a minute, however often it has failed.
func TestAServerThatFailedIsAskedAgainSoon(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.down = apierrors.NewInternalError(errors.New("no review"))
	for range 20 {
		wait := w.look("ns/s")
		if wait <= 0 || wait > time.Minute {
			t.Fatalf("waits %s", wait)
		}
		w.pass(wait)
	}
	if n := counter(t, w.recorder, "credence_agent_failures_total", "server_failed"); n != 20 {
		t.Errorf("%g failures of the server, want 20", n)
	}
}

// While nothing can be written, a token is requested once; changed inputs, or a request for a new one, are worth another.
func TestATokenThatCouldNotBeWrittenIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*world)
		want      int
	}{
		"nothing changes":  {func(*world) {}, 1},
		"audiences change": {func(w *world) { w.identities["ns/banana"].Spec.Audiences = []string{"other"} }, 2},
		"a new one is requested": {func(w *world) {
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
		}, 2},
		"its key is revoked": {func(w *world) { w.revoked["k1"], w.keyID = true, "k2" }, 2},
		"it is due itself":   {func(w *world) { w.pass(45 * time.Minute) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, labelled("ns", "s", "banana"))
			w.addIdentity("ns", "banana", "u1")
			w.unwritable = errors.New("the webhook does not answer")
			for range 5 {
				w.pass(w.look("ns/s"))
			}
			if len(w.tokens) != 1 {
				t.Errorf("%d tokens were requested while none could be written, want 1", len(w.tokens))
			}
			test.meanwhile(w)
			w.unwritable = nil
			for range 10 {
				if wait := w.look("ns/s"); secrets.Stored(w.secret("ns/s")) == nil {
					w.pass(wait)
				}
			}
			token := secrets.Stored(w.secret("ns/s"))
			if token == nil || len(w.tokens) != test.want || w.revoked[token.KeyID] {
				t.Errorf("the Secret has %+v, %d tokens were requested, want %d", token, len(w.tokens), test.want)
			}
		})
	}
}
