package pullsecrets

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/test/testkit"
)

var start0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// world is a Secret in a fake of the API, a token endpoint, and a clock.
type world struct {
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	events *record.FakeRecorder
	log    bytes.Buffer
	*Controller
	endpoint *httptest.Server

	exchanges  int
	lives      int  // of passwords, in seconds
	refuses    bool // the endpoint does
	settings   string
	denied     bool
	reviews    int
	reviewErr  error
	unwritable error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(start0), events: record.NewFakeRecorder(100), lives: 600}
	w.endpoint = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		w.exchanges++
		if w.refuses {
			response.WriteHeader(http.StatusBadRequest)
			_, _ = response.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		_, _ = fmt.Fprintf(response, `{"access_token":"password-%d","expires_in":%d}`, w.exchanges, w.lives)
	}))
	t.Cleanup(w.endpoint.Close)
	w.settings = `registries:
- {images: direct.example, audiences: [fruit], exchange: token-server}
- {images: exchanged.example/team, audiences: [fruit], exchange: token-exchange, settings: {endpoint: "` + w.endpoint.URL + `"}}
- {images: other.example, audiences: [other], exchange: token-server}
`
	scheme := runtime.NewScheme()
	testkit.Must(t, corev1.AddToScheme(scheme))
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pull", UID: "u", Labels: map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor, v1alpha1.LabelProvider: "generic"},
			Annotations: map[string]string{
				v1alpha1.AnnotationName: "puller", v1alpha1.AnnotationNamespace: "ns", v1alpha1.AnnotationRegistries: "exchanged.example/team", v1alpha1.AnnotationRequester: "alice", "note": "ours",
			},
		},
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}"), "theirs": []byte("kept")},
	}).WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if w.unwritable != nil {
			return w.unwritable
		}
		return c.Patch(ctx, object, patch, options...)
	}}).Build()
	w.restart()
	t.Cleanup(func() {
		if log := w.log.String(); strings.Contains(log, "eyJ") || strings.Contains(log, "password-") {
			t.Errorf("a secret is in the log: %s", log)
		}
	})
	return w
}

// restart has a Controller that remembers nothing.
func (w *world) restart() {
	w.Controller = &Controller{Needs{
		Client: w.client, Registries: func() (registry.Config, error) { return registry.Parse([]byte(w.settings)) }, Reviews: w, Window: renewal.Window{From: 0.6, To: 0.8},
		Clock: w.clock, Random: func() float64 { return 0.5 }, Events: w.events, Recorder: NewRecorder(w.clock), Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}}
}

// Review implements authority.Reviewer.
func (w *world) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	w.reviews++
	if r := spec.ResourceAttributes; spec.User != "alice" || r.Verb != "use" || r.Namespace != "ns" || r.Name != "puller" {
		w.t.Errorf("a review of %+v", spec)
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: !w.denied}, w.reviewErr
}

func (w *world) look() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "pull"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	var secret corev1.Secret
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "pull"}, &secret); err != nil {
		w.t.Fatal(err)
	}
	return &secret
}

func (w *world) edit(change func(*corev1.Secret)) {
	w.t.Helper()
	secret := w.secret()
	change(secret)
	if err := w.client.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

// deliver is what the agent does: it writes a token that lives an hour.
func (w *world) deliver() {
	w.t.Helper()
	now, encode := w.clock.Now(), base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":"https://issuer.example","sub":"s","aud":["fruit"],"iat":%d,"exp":%d,"jti":"j"}`, now.Unix(), now.Add(time.Hour).Unix())
	token := encode([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
	w.edit(func(s *corev1.Secret) { s.Data[v1alpha1.SecretToken] = []byte(token) })
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// logins are those of the Secret.
func (w *world) logins() map[string]string {
	w.t.Helper()
	var file struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(w.secret().Data[corev1.DockerConfigJsonKey], &file); err != nil {
		w.t.Fatal(err)
	}
	logins := map[string]string{}
	for images, login := range file.Auths {
		text, err := base64.StdEncoding.DecodeString(login.Auth)
		if err != nil {
			w.t.Fatal(err)
		}
		logins[images] = string(text)
	}
	return logins
}

func (w *world) has(when string, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.logins()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func (w *world) event() string {
	select {
	case event := <-w.events.Events:
		return event
	default:
		return ""
	}
}

// Passwords are written once there is a token, and renewed before they end, with a new token, and when another writer has taken them out; the
// Secret keeps all else that it holds.
func TestPasswordsAreKeptFresh(t *testing.T) {
	w := newWorld(t)
	if wait := w.look(); wait != 0 || w.exchanges > 0 {
		t.Errorf("before there is a token: %d exchanges, again after %s", w.exchanges, wait)
	}
	w.deliver()
	before := w.secret()
	if wait := w.look(); wait != 7*time.Minute {
		t.Errorf("passwords that live ten minutes are renewed after %s", wait)
	}
	w.has("with a token", map[string]string{"exchanged.example/team": "credence:password-1"})
	after := w.secret()
	for _, annotation := range []string{v1alpha1.AnnotationRegistriesInputs, v1alpha1.AnnotationRegistriesRenewTimestamp} {
		if after.Annotations[annotation] == "" {
			t.Errorf("no annotation %s", annotation)
		}
		delete(after.Annotations, annotation)
	}
	after.Data[corev1.DockerConfigJsonKey], after.ResourceVersion = before.Data[corev1.DockerConfigJsonKey], before.ResourceVersion
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more of the Secret is another (-before +after):\n%s", diff)
	}

	w.pass(6 * time.Minute)
	w.restart()
	if wait := w.look(); wait != time.Minute || w.exchanges != 1 {
		t.Errorf("after a restart: %d exchanges, again after %s", w.exchanges, wait)
	}
	w.pass(time.Minute)
	w.look()
	w.has("due", map[string]string{"exchanged.example/team": "credence:password-2"})
	w.deliver()
	w.look()
	w.has("with a new token", map[string]string{"exchanged.example/team": "credence:password-3"})
	w.pass(5 * time.Minute)
	w.edit(func(s *corev1.Secret) { s.Data[corev1.DockerConfigJsonKey] = []byte("{}") })
	w.look()
	w.has("taken out", map[string]string{"exchanged.example/team": "credence:password-4"})
	w.edit(func(s *corev1.Secret) { s.Data[corev1.DockerConfigJsonKey] = []byte("{}") })
	w.look()
	w.edit(func(s *corev1.Secret) { s.Data[corev1.DockerConfigJsonKey] = []byte("{}") })
	if wait := w.look(); wait == 0 || w.exchanges != 5 {
		t.Errorf("another writer takes them out all the time: %d exchanges, again after %s", w.exchanges, wait)
	}
	if w.reviews != w.exchanges {
		t.Errorf("%d reviews for %d exchanges", w.reviews, w.exchanges)
	}

	// Passwords that live longer than the token wait for the next one.
	w.pass(5 * time.Minute)
	w.lives = 12 * 3600
	w.look()
	w.deliver()
	if wait := w.look(); wait != longestSleep {
		t.Errorf("looks again after %s", wait)
	}
	exchanged := w.exchanges
	w.pass(59 * time.Minute)
	if w.look(); w.exchanges != exchanged {
		t.Errorf("%d exchanges for one token", w.exchanges-exchanged)
	}
	w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRegistries] = "direct.example" })
	w.look()
	w.has("with another registry", map[string]string{"direct.example": "credence:" + string(w.secret().Data[v1alpha1.SecretToken])})
	if event := w.event(); event != "" {
		t.Errorf("an Event: %q", event)
	}
	// A token that has expired is handed to no registry.
	w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRegistries] = "exchanged.example/team" })
	w.pass(time.Minute)
	if wait := w.look(); wait != 0 || w.exchanges != exchanged {
		t.Errorf("after the token's end: %d exchanges, again after %s", w.exchanges-exchanged, wait)
	}
	testkit.Expect(t, testutil.CollectAndCompare(w.Recorder, strings.NewReader(`# HELP credence_registry_secrets Secrets in which passwords of registries are kept.
# TYPE credence_registry_secrets gauge
credence_registry_secrets 1
# HELP credence_registry_soonest_expiry_seconds Time until the passwords, or the token, that expire first expire; negative once they have. Absent without any.
# TYPE credence_registry_soonest_expiry_seconds gauge
credence_registry_soonest_expiry_seconds 0
`), "credence_registry_secrets", "credence_registry_soonest_expiry_seconds"))
}

// An obstacle to new passwords is an Event on the Secret, which keeps those that it has; it is tried again, later each time, and at once when the
// Secret changes.
func TestPasswordsThatAreNotMade(t *testing.T) {
	for name, test := range map[string]struct {
		cause  string
		change func(*world)
		want   string
		mends  func(*world)
	}{
		"the right is gone": {"use_denied", func(w *world) { w.denied = true }, "UseDenied alice, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity ns/puller", func(w *world) { w.denied = false }},
		"no review":         {"review_failed", func(w *world) { w.reviewErr = errors.New("down") }, "ReviewFailed ", func(w *world) { w.reviewErr = nil }},
		"a refusal":         {"registry_refused", func(w *world) { w.refuses = true }, "RegistryRefused get credentials for images of exchanged.example/team: ", func(w *world) { w.refuses = false }},
		"an unknown registry": {"registry_unknown", func(w *world) {
			w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRegistries] = "evil.example" })
		}, `RegistryUnknown registry "evil.example" is not one of the configuration`, nil},
		"a token for another registry": {"registry_refused", func(w *world) {
			w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRegistries] = "other.example" })
		}, `the identity's token is for audience "fruit"`, nil},
		"no configuration": {"registries_invalid", func(w *world) { w.settings = "registries: []" }, "RegistriesInvalid the configuration of credence-registry cannot be used", nil},
		"no identity": {"annotation_invalid", func(w *world) {
			w.edit(func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationName) })
		}, "InvalidAnnotation ", nil},
		"no registry": {"annotation_invalid", func(w *world) {
			w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRegistries] = "" })
		}, `InvalidAnnotation Secret "pull": annotation identity.credence.dev/registries: names no registry`, nil},
		"a policy": {"write_failed", func(w *world) {
			w.unwritable = apierrors.NewForbidden(corev1.Resource("secrets"), "pull", errors.New("no"))
		}, "WriteFailed write the passwords of registries: ", func(w *world) { w.unwritable = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deliver()
			w.look()
			had := w.logins()
			w.pass(7 * time.Minute)
			test.change(w)
			wait := w.look()
			if event := w.event(); wait <= 0 || !strings.HasPrefix(event, "Warning "+test.want) && !strings.Contains(event, test.want) || strings.Contains(event, "eyJ") {
				t.Errorf("tried again after %s, the Event is %q, want %q", wait, event, test.want)
			}
			w.has("afterwards", had)
			exchanges, reviews := w.exchanges, w.reviews
			if again := w.look(); again != wait || w.exchanges != exchanges || w.reviews != reviews {
				t.Errorf("looked at once more: again after %s, want %s; %d exchanges, %d reviews more", again, wait, w.exchanges-exchanges, w.reviews-reviews)
			}
			w.pass(wait)
			if longer := w.look(); longer <= wait || w.event() != "" {
				t.Errorf("the second time: again after %s, after %s before, or another Event", longer, wait)
			}
			if got := testutil.ToFloat64(w.Recorder.failures.WithLabelValues(test.cause)); got != 2 {
				t.Errorf("counted %v times", got)
			}
			if test.mends == nil {
				return
			}
			// Another user has taken the Secret over.
			test.mends(w)
			w.edit(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequesterUID] = "u-alice" })
			w.look()
			if diff := cmp.Diff(had, w.logins()); diff == "" {
				t.Error("the passwords are the old ones")
			}
		})
	}
}

// Only Secrets of one type, with the label and the annotation, are looked at.
func TestOtherSecrets(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"without the label":      func(s *corev1.Secret) { s.Labels = nil },
		"without the annotation": func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationRegistries) },
		"of another type":        func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
	} {
		w := newWorld(t)
		w.deliver()
		w.edit(change)
		before := w.secret()
		if wait := w.look(); wait != 0 || w.exchanges > 0 || w.reviews > 0 {
			t.Errorf("%s: %d exchanges, again after %s", name, w.exchanges, wait)
		}
		if diff := cmp.Diff(before, w.secret()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
