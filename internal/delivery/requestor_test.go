package delivery

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

func TestATokenIsWritten(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	if again := w.look("ns/s"); again != 42*time.Minute {
		t.Errorf("looks again after %s, want the middle of the window, 42m", again)
	}
	secret := w.secret("ns/s")
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
	w.requestor.Ledger = &secrets.Ledger{}
	w.pass(41 * time.Minute)
	if again := w.look("ns/s"); again != time.Minute || w.secret("ns/s").ResourceVersion != version {
		t.Errorf("looks again after %s, want 1m, and nothing written", again)
	}
	w.pass(time.Minute)
	w.look("ns/s")
	if len(w.tokens) != 2 {
		t.Errorf("%d tokens were requested, want 2", len(w.tokens))
	}
}

func TestRenewedAtOnce(t *testing.T) {
	for name, change := range map[string]func(*world){
		"other audiences": func(w *world) { w.identities["ns/banana"].Spec.Audiences = []string{"other"} },
		"other providerConfig": func(w *world) {
			w.identities["ns/banana"].Spec.TargetSystem.ProviderConfig.Raw = []byte(`{"kind":"Config","apiVersion":"a/v2"}`)
		},
		"created anew": func(w *world) { w.addIdentity("ns", "banana", "u2") },
		"another identity": func(w *world) {
			w.addIdentity("ns", "cherry", "u3")
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationName] = "cherry" })
		},
		"token removed": func(w *world) { w.edit("ns/s", func(s *corev1.Secret) { delete(s.Data, "token") }) },
		"token broken":  func(w *world) { w.edit("ns/s", func(s *corev1.Secret) { s.Data["token"] = []byte("a.b.c") }) },
		"token of before": func(w *world) {
			before := w.secret("ns/s").Data["token"]
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
			w.pass(time.Minute)
			w.look("ns/s")
			w.tokens = w.tokens[:1]
			w.pass(time.Minute)
			w.edit("ns/s", func(s *corev1.Secret) { s.Data["token"] = before })
		},
		"config changed": func(w *world) { w.edit("ns/s", func(s *corev1.Secret) { s.Data["config"] = []byte("x: 1\n") }) },
		"timestamp broken": func(w *world) {
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRenewTimestamp] = "never" })
		},
		"timestamp removed": func(w *world) {
			w.edit("ns/s", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationRenewTimestamp) })
		},
		"key revoked": func(w *world) { w.revoked["k1"], w.keyID = true, "k2" },
		"asked": func(w *world) {
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
		},
		"clock set back": func(w *world) { w.pass(-24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, labelled("ns", "s", "banana"))
			w.addIdentity("ns", "banana", "u1")
			w.look("ns/s")
			before := w.secret("ns/s").Data["token"]
			w.pass(time.Minute)
			w.look("ns/s")
			if len(w.tokens) != 1 {
				t.Fatalf("%d tokens before anything changed, want 1", len(w.tokens))
			}
			change(w)
			w.look("ns/s")
			secret := w.secret("ns/s")
			if len(w.tokens) != 2 || string(secret.Data["token"]) == string(before) {
				t.Errorf("%d tokens were requested, want a second", len(w.tokens))
			}
			if _, still := secret.Annotations[v1alpha1.AnnotationOperation]; still {
				t.Error("the annotation is still there")
			}
			if again := w.look("ns/s"); again < 30*time.Minute || len(w.tokens) != 2 {
				t.Errorf("not settled: looks again after %s, %d tokens", again, len(w.tokens))
			}
		})
	}
}

func TestUnlabelledSecretsAreLeftAlone(t *testing.T) {
	secret := labelled("ns", "s", "banana")
	delete(secret.Labels, v1alpha1.LabelPurpose)
	w := newWorld(t, secret)
	w.addIdentity("ns", "banana", "u1")
	version := w.secret("ns/s").ResourceVersion
	if again := w.look("ns/s"); again != 0 || len(w.tokens) != 0 || w.secret("ns/s").ResourceVersion != version {
		t.Errorf("looks again after %s, %d tokens", again, len(w.tokens))
	}
}

func TestBadAnnotationsGetAnEvent(t *testing.T) {
	secret := labelled("ns", "s", "banana")
	secret.Annotations[v1alpha1.AnnotationContextObject] = "no JSON"
	w := newWorld(t, secret)
	w.addIdentity("ns", "banana", "u1")
	if again := w.look("ns/s"); again != 0 || len(w.tokens) != 0 {
		t.Errorf("looks again after %s, %d tokens: only people can mend this", again, len(w.tokens))
	}
	if event := w.event(); !strings.Contains(event, "InvalidAnnotation") || !strings.Contains(event, v1alpha1.AnnotationContextObject) {
		t.Errorf("the Event is %q", event)
	}
	w.look("ns/s")
	if event := w.event(); event != "" {
		t.Errorf("reported twice: %q", event)
	}
}

func TestAnIdentityThatIsDeleted(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.look("ns/s")
	delete(w.identities, "ns/banana")
	w.pass(10 * time.Minute)
	if again := w.look("ns/s"); again != 50*time.Minute {
		t.Errorf("looks again after %s, want at the token's end", again)
	}
	secret := w.secret("ns/s")
	if secrets.Stored(secret) == nil || secret.Annotations[v1alpha1.AnnotationOrphaned] != "2026-01-02T03:10:00Z" {
		t.Errorf("token %v, annotations %v: want the token kept, and the mark", secrets.Stored(secret), secret.Annotations)
	}
	if event := w.event(); !strings.Contains(event, "IdentityMissing") || !strings.Contains(event, "2026-01-02T04:00:00Z") {
		t.Errorf("the Event is %q", event)
	}
	version := secret.ResourceVersion
	w.look("ns/s")
	if w.secret("ns/s").ResourceVersion != version {
		t.Error("marked twice")
	}
	w.pass(50 * time.Minute)
	w.look("ns/s")
	if secret := w.secret("ns/s"); secret.Data["token"] != nil || string(secret.Data["theirs"]) != "kept" {
		t.Errorf("an expired token of no identity is still there, or more than it is gone: %v", secret.Data)
	}
	w.addIdentity("ns", "banana", "u2")
	w.look("ns/s")
	secret = w.secret("ns/s")
	if _, marked := secret.Annotations[v1alpha1.AnnotationOrphaned]; marked || secrets.Stored(secret).Subject != "sub:u2" {
		t.Errorf("after the identity was created anew: token %v, annotations %v", secrets.Stored(secret), secret.Annotations)
	}
}

// Tokens that can't be written are not requested.
func TestImmutableSecretsAreLeftAlone(t *testing.T) {
	secret := labelled("ns", "s", "banana")
	secret.Immutable = ptr.To(true)
	w := newWorld(t, secret)
	w.addIdentity("ns", "banana", "u1")
	if again := w.look("ns/s"); again != 0 || len(w.tokens) != 0 {
		t.Errorf("looks again after %s, %d tokens: only people can mend this", again, len(w.tokens))
	}
	if event := w.event(); !strings.Contains(event, "SecretImmutable") {
		t.Errorf("the Event is %q", event)
	}
}

// A service account that went a moment ago is not a missing identity.
func TestAContextThatIsGone(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.down = apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "web")
	if again := w.look("ns/s"); again <= 0 {
		t.Error("it is not tried again")
	}
	if event := w.event(); !strings.Contains(event, `serviceaccounts "web" not found`) || strings.Contains(event, "IdentityMissing") {
		t.Errorf("the Event is %q", event)
	}
	if _, marked := w.secret("ns/s").Annotations[v1alpha1.AnnotationOrphaned]; marked {
		t.Error("marked as one whose identity is gone")
	}
}

// A server that does not know the resource has not looked for the identity.
func TestAnAPIThatIsGoneIsAnOutage(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.down = apierrors.NewGenericServerResponse(404, "GET", v1alpha1.Resource("workloadidentities"), "banana", "404 page not found", 0, true)
	w.look("ns/s")
	if _, marked := w.secret("ns/s").Annotations[v1alpha1.AnnotationOrphaned]; marked {
		t.Error("marked as one whose identity is gone")
	}
	if since, waiting := w.requestor.Outage.Lasts(); since.IsZero() || waiting != 1 {
		t.Errorf("outage since %v, %d waiting", since, waiting)
	}
}

func TestAWriteThatConflicts(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	once := true
	w.onPatch = func(client.Object) {
		if once {
			once = false
			w.edit("ns/s", func(s *corev1.Secret) {
				s.Data["other"] = []byte("new")
				s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken
			})
		}
	}
	w.look("ns/s")
	secret := w.secret("ns/s")
	if secrets.Stored(secret) == nil || string(secret.Data["other"]) != "new" || len(w.tokens) != 1 {
		t.Errorf("after a conflict: token %v, data %v, %d tokens requested", secrets.Stored(secret), secret.Data["other"], len(w.tokens))
	}
	if secret.Annotations[v1alpha1.AnnotationOperation] == "" {
		t.Error("a request after that for the token is gone unanswered")
	}
}

func TestASecretThatChangesItsMindIsNotGivenTheTokenOfBefore(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.addIdentity("ns", "cherry", "u2")
	once := true
	w.onPatch = func(client.Object) {
		if once {
			once = false
			w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationName] = "cherry" })
		}
	}
	if again := w.look("ns/s"); again <= 0 || w.secret("ns/s").Data["token"] != nil {
		t.Errorf("looks again after %s; the Secret holds %v", again, secrets.Stored(w.secret("ns/s")))
	}
	w.look("ns/s")
	if token := secrets.Stored(w.secret("ns/s")); token == nil || token.Subject != "sub:u2" {
		t.Errorf("the Secret holds %+v, want a token of the other identity", token)
	}
}
