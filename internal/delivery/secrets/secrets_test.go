package secrets_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// requesting is a World with the Secret ns/s, which requests tokens of an identity that exists.
func requesting(t testing.TB) *deliverytest.World {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	return w
}

// requestToken has the Secret request a new token.
func requestToken(w *deliverytest.World) {
	w.Edit("ns/s", func(s *corev1.Secret) {
		s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
	})
}

func TestTokenIsWritten(t *testing.T) {
	w := requesting(t)
	if again := w.Look("ns/s"); again != 42*time.Minute {
		t.Errorf("looks again after %s, want the middle of the window, 42m", again)
	}
	secret := w.Secret("ns/s")
	token := secrets.Stored(secret)
	if token == nil || token.Subject != "sub:u1" || string(secret.Data["config"]) != "apiVersion: a/v1\nkind: Config\n" {
		t.Errorf("the Secret holds %+v and config %q", token, secret.Data["config"])
	}
	if string(secret.Data["theirs"]) != "kept" || secret.Labels["team"] != "fruit" || secret.Annotations["note"] != "ours" {
		t.Errorf("the fields of other writers are gone: %+v", secret.ObjectMeta)
	}
	if secret.Labels[v1alpha1.LabelProvider] != "aws" || secret.Annotations[v1alpha1.AnnotationRenewTimestamp] != "2026-01-02T03:42:00Z" {
		t.Errorf("labels %v, annotations %v", secret.Labels, secret.Annotations)
	}
	// Looked at again, also by an agent that has just been started, it is left alone until its time.
	version := secret.ResourceVersion
	w.Secrets.Ledger = &secrets.Ledger{}
	w.Pass(41 * time.Minute)
	if again := w.Look("ns/s"); again != time.Minute || w.Secret("ns/s").ResourceVersion != version {
		t.Errorf("looks again after %s, want 1m, and nothing written", again)
	}
	w.Pass(time.Minute)
	w.Look("ns/s")
	if len(w.Tokens) != 2 {
		t.Errorf("%d tokens were requested, want 2", len(w.Tokens))
	}
}

func TestChangesRenewAtOnce(t *testing.T) {
	for name, change := range map[string]func(*deliverytest.World){
		"other audiences": func(w *deliverytest.World) { w.Identities["ns/banana"].Spec.Audiences = []string{"other"} },
		"other providerConfig": func(w *deliverytest.World) {
			w.Identities["ns/banana"].Spec.TargetSystem.ProviderConfig.Raw = []byte(`{"kind":"Config","apiVersion":"a/v2"}`)
		},
		"created anew": func(w *deliverytest.World) { w.AddIdentity("ns", "banana", "u2") },
		"another identity": func(w *deliverytest.World) {
			w.AddIdentity("ns", "cherry", "u3")
			w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationName] = "cherry" })
		},
		"token removed": func(w *deliverytest.World) { w.Edit("ns/s", func(s *corev1.Secret) { delete(s.Data, "token") }) },
		"token broken": func(w *deliverytest.World) {
			w.Edit("ns/s", func(s *corev1.Secret) { s.Data["token"] = []byte("a.b.c") })
		},
		"token of before": func(w *deliverytest.World) {
			before := w.Secret("ns/s").Data["token"]
			requestToken(w)
			w.Pass(time.Minute)
			w.Look("ns/s")
			w.Tokens = w.Tokens[:1]
			w.Pass(time.Minute)
			w.Edit("ns/s", func(s *corev1.Secret) { s.Data["token"] = before })
		},
		"config changed": func(w *deliverytest.World) {
			w.Edit("ns/s", func(s *corev1.Secret) { s.Data["config"] = []byte("x: 1\n") })
		},
		"timestamp broken": func(w *deliverytest.World) {
			w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRenewTimestamp] = "never" })
		},
		"timestamp removed": func(w *deliverytest.World) {
			w.Edit("ns/s", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationRenewTimestamp) })
		},
		"key revoked": func(w *deliverytest.World) { w.RevokedKeys["k1"], w.KeyID = true, "k2" },
		"asked": func(w *deliverytest.World) {
			requestToken(w)
		},
		"clock set back": func(w *deliverytest.World) { w.Pass(-24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := requesting(t)
			w.Look("ns/s")
			before := w.Secret("ns/s").Data["token"]
			w.Pass(time.Minute)
			w.Look("ns/s")
			if len(w.Tokens) != 1 {
				t.Fatalf("%d tokens before anything changed, want 1", len(w.Tokens))
			}
			change(w)
			w.Look("ns/s")
			secret := w.Secret("ns/s")
			if len(w.Tokens) != 2 || string(secret.Data["token"]) == string(before) {
				t.Errorf("%d tokens were requested, want a second", len(w.Tokens))
			}
			if _, still := secret.Annotations[v1alpha1.AnnotationOperation]; still {
				t.Error("the annotation is still there")
			}
			if again := w.Look("ns/s"); again < 30*time.Minute || len(w.Tokens) != 2 {
				t.Errorf("not settled: looks again after %s, %d tokens", again, len(w.Tokens))
			}
		})
	}
}

func TestUnlabeledSecretsAreLeftAlone(t *testing.T) {
	secret := deliverytest.LabeledSecret("ns", "s", "banana")
	delete(secret.Labels, v1alpha1.LabelPurpose)
	w := deliverytest.New(t, secret)
	w.AddIdentity("ns", "banana", "u1")
	version := w.Secret("ns/s").ResourceVersion
	if again := w.Look("ns/s"); again != 0 || len(w.Tokens) != 0 || w.Secret("ns/s").ResourceVersion != version {
		t.Errorf("looks again after %s, %d tokens", again, len(w.Tokens))
	}
}

func TestInvalidAnnotationIsReportedOnce(t *testing.T) {
	secret := deliverytest.LabeledSecret("ns", "s", "banana")
	secret.Annotations[v1alpha1.AnnotationContextObject] = "no JSON"
	w := deliverytest.New(t, secret)
	w.AddIdentity("ns", "banana", "u1")
	if again := w.Look("ns/s"); again != 0 || len(w.Tokens) != 0 {
		t.Errorf("looks again after %s, %d tokens: only people can mend this", again, len(w.Tokens))
	}
	if event := w.Event(); !strings.Contains(event, "InvalidAnnotation") || !strings.Contains(event, v1alpha1.AnnotationContextObject) {
		t.Errorf("the Event is %q", event)
	}
	w.Look("ns/s")
	if event := w.Event(); event != "" {
		t.Errorf("reported twice: %q", event)
	}
}

func TestTokenOfADeletedIdentityGoesWhenExpired(t *testing.T) {
	w := requesting(t)
	w.Look("ns/s")
	delete(w.Identities, "ns/banana")
	w.Pass(10 * time.Minute)
	if again := w.Look("ns/s"); again != 50*time.Minute {
		t.Errorf("looks again after %s, want at the token's end", again)
	}
	secret := w.Secret("ns/s")
	if secrets.Stored(secret) == nil || secret.Annotations[v1alpha1.AnnotationOrphaned] != "2026-01-02T03:10:00Z" {
		t.Errorf("token %v, annotations %v: want the token kept, and the mark", secrets.Stored(secret), secret.Annotations)
	}
	if event := w.Event(); !strings.Contains(event, "IdentityMissing") || !strings.Contains(event, "2026-01-02T04:00:00Z") {
		t.Errorf("the Event is %q", event)
	}
	version := secret.ResourceVersion
	w.Look("ns/s")
	if w.Secret("ns/s").ResourceVersion != version {
		t.Error("marked twice")
	}
	w.Pass(50 * time.Minute)
	w.Look("ns/s")
	if secret := w.Secret("ns/s"); secret.Data["token"] != nil || string(secret.Data["theirs"]) != "kept" {
		t.Errorf("an expired token of no identity is still there, or more than it is gone: %v", secret.Data)
	}
	w.AddIdentity("ns", "banana", "u2")
	w.Look("ns/s")
	secret = w.Secret("ns/s")
	if _, marked := secret.Annotations[v1alpha1.AnnotationOrphaned]; marked || secrets.Stored(secret).Subject != "sub:u2" {
		t.Errorf("after the identity was created anew: token %v, annotations %v", secrets.Stored(secret), secret.Annotations)
	}
}

// Tokens that can't be written are not requested.
func TestNoTokenIsRequestedForImmutableSecrets(t *testing.T) {
	secret := deliverytest.LabeledSecret("ns", "s", "banana")
	secret.Immutable = ptr.To(true)
	w := deliverytest.New(t, secret)
	w.AddIdentity("ns", "banana", "u1")
	if again := w.Look("ns/s"); again != 0 || len(w.Tokens) != 0 {
		t.Errorf("looks again after %s, %d tokens: only people can mend this", again, len(w.Tokens))
	}
	if event := w.Event(); !strings.Contains(event, "SecretImmutable") {
		t.Errorf("the Event is %q", event)
	}
}

// A service account that went a moment ago is not a missing identity.
func TestMissingAccountIsNotAMissingIdentity(t *testing.T) {
	w := requesting(t)
	w.Down = apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "web")
	if again := w.Look("ns/s"); again <= 0 {
		t.Error("it is not tried again")
	}
	if event := w.Event(); !strings.Contains(event, `serviceaccounts "web" not found`) || strings.Contains(event, "IdentityMissing") {
		t.Errorf("the Event is %q", event)
	}
	if _, marked := w.Secret("ns/s").Annotations[v1alpha1.AnnotationOrphaned]; marked {
		t.Error("marked as one whose identity is gone")
	}
}

// A server that does not know the resource has not looked for the identity.
func TestMissingAPIIsAnOutage(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"))
	w.Down = apierrors.NewGenericServerResponse(404, "GET", v1alpha1.Resource("workloadidentities"), "banana", "404 page not found", 0, true)
	w.Look("ns/s")
	if _, marked := w.Secret("ns/s").Annotations[v1alpha1.AnnotationOrphaned]; marked {
		t.Error("marked as one whose identity is gone")
	}
	if since, waiting := w.Secrets.Outage.Lasts(); since.IsZero() || waiting != 1 {
		t.Errorf("outage since %v, %d waiting", since, waiting)
	}
}

func TestConflictingWriteIsRepeated(t *testing.T) {
	w := requesting(t)
	once := true
	w.OnPatch = func(client.Object) {
		if once {
			once = false
			w.Edit("ns/s", func(s *corev1.Secret) {
				s.Data["other"] = []byte("new")
				s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
			})
		}
	}
	w.Look("ns/s")
	secret := w.Secret("ns/s")
	if secrets.Stored(secret) == nil || string(secret.Data["other"]) != "new" || len(w.Tokens) != 1 {
		t.Errorf("after a conflict: token %v, data %v, %d tokens requested", secrets.Stored(secret), secret.Data["other"], len(w.Tokens))
	}
	if secret.Annotations[v1alpha1.AnnotationOperation] == "" {
		t.Error("a request after that for the token is gone unanswered")
	}
}

func TestTokenOfAnOldRequestIsNotWritten(t *testing.T) {
	w := requesting(t)
	w.AddIdentity("ns", "cherry", "u2")
	once := true
	w.OnPatch = func(client.Object) {
		if once {
			once = false
			w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationName] = "cherry" })
		}
	}
	if again := w.Look("ns/s"); again <= 0 || w.Secret("ns/s").Data["token"] != nil {
		t.Errorf("looks again after %s; the Secret holds %v", again, secrets.Stored(w.Secret("ns/s")))
	}
	w.Look("ns/s")
	if token := secrets.Stored(w.Secret("ns/s")); token == nil || token.Subject != "sub:u2" {
		t.Errorf("the Secret holds %+v, want a token of the other identity", token)
	}
}

// A restart of the identity cluster's API server is no failure of a Secret whose token was not due. It is one once the token is due.
func TestNothingDueInAnOutage(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{"by name": deliverytest.LabeledSecret("ns", "s", "banana"), "by a binding": bound("ns", "s", "infra")} {
		t.Run(name, func(t *testing.T) {
			w := deliverytest.New(t, secret)
			w.AddIdentity("ns", "banana", "u1")
			bindings := &answers{boundTo: boundTo{"ns/infra": "banana"}, world: w, errs: []error{nil}}
			w.Secrets.Bindings = bindings
			w.Look("ns/s")
			w.Down = apierrors.NewServiceUnavailable("starting")
			bindings.errs = []error{w.Down}
			w.Look("ns/s")
			if event, failed := w.Event(), w.Secrets.Ledger.Get(deliverytest.Key("ns/s")).Reported; event != "" || failed.Reason != "" {
				t.Errorf("nothing was due: Event %q, failure %+v", event, failed)
			}
			w.Pass(48 * time.Minute)
			w.Look("ns/s")
			if event := w.Event(); !strings.Contains(event, "IdentityClusterUnreachable") {
				t.Errorf("a token is due: Event %q", event)
			}
		})
	}
}
