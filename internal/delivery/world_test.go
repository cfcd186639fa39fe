package delivery

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/identity"
)

var start0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// world is both clusters: objects in a fake of the API, identities and their tokens in maps, and a clock.
type world struct {
	controllers
	t      testing.TB
	client client.Client
	clock  *clocktesting.FakePassiveClock
	events *record.FakeRecorder

	mu          sync.Mutex
	identities  map[string]*v1alpha1.WorkloadIdentity
	down        error                  // the answer of the identity cluster to every request
	downIn      map[string]error       // the answer to requests for tokens of a namespace
	tokens      []identityTokenAsked   // in order
	refused     []types.NamespacedName // requested and refused by downIn
	pods        []corev1.Pod           // of the account
	podLists    int                    // how often they were listed
	reviewed    []authority.Subject    // in order
	denied      map[string]bool        // accounts that may not use identities
	revoked     map[string]bool        // keys
	keyID       string                 // that signs
	ahead       time.Duration          // of the issuer's clock
	queued      map[string]time.Duration
	onStatus    func() error            // before a status is patched; an error is the answer
	onPatch     func(client.Object)     // before a patch is carried out
	unserved    string                  // a namespace whose Secrets the agent may not read
	unwritable  error                   // the answer to patches
	uncreatable error                   // the answer to creations
	shown       *corev1.Secret          // shown by the cache instead of the Secret
	deliveries                          // of the identity cluster
	bindings    []types.NamespacedName  // by which tokens were requested, in order
	data        map[string][]byte       // of the Secret of each binding
	dataErr     error                   // the answer to requests for it
	dataAsked   int                     // how often it was requested
	dataFor     *v1alpha1.ContextObject // for which it was requested last
}

type identityTokenAsked struct {
	name    types.NamespacedName
	context *v1alpha1.ContextObject
}

const lifetime = time.Hour

func newWorld(t testing.TB, objects ...client.Object) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakePassiveClock(start0), events: record.NewFakeRecorder(10000), keyID: "k1",
		identities: map[string]*v1alpha1.WorkloadIdentity{}, denied: map[string]bool{}, revoked: map[string]bool{}, queued: map[string]time.Duration{},
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).
		WithIndex(&corev1.Secret{}, accounts.Index, accounts.IndexValues).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if w.onPatch != nil {
				w.onPatch(object)
			}
			if w.unwritable != nil {
				return w.unwritable
			}
			return c.Patch(ctx, object, patch, options...)
		}, Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if w.uncreatable != nil {
				return w.uncreatable
			}
			return c.Create(ctx, object, options...)
		}, SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if w.onStatus != nil {
				if err := w.onStatus(); err != nil {
					return err
				}
			}
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		}}).Build()
	w.controllers = newControllers(Config{
		Identities: w, Tokens: w, Data: w, Deliveries: &w.deliveries, Keys: w, Reviews: w, NamesAccounts: true, Window: renewal.Window{From: 0.6, To: 0.8},
		Clock: w.clock, Random: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler),
		Events: workload.Events{Workload: w.events, Identity: record.NewFakeRecorder(10000)},
	}, cluster{
		client: w.client, live: w.client, secrets: w.queue, services: w.queue,
		serves: func(namespace string) bool { return namespace != w.unserved },
		pods: func(context.Context, types.NamespacedName) ([]corev1.Pod, error) {
			w.podLists++
			return w.pods, nil
		},
	})
	return w
}

func (w *world) queue(key types.NamespacedName, after time.Duration) { w.queued[key.String()] = after }

// Get implements Identities.
func (w *world) Get(_ context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	if wi, ok := w.identities[namespace+"/"+name]; ok {
		return wi, nil
	}
	if w.down != nil {
		return nil, w.down
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name)
}

// Read implements Identities: no webhook and no policy of a namespace is in the way of reads.
func (w *world) Read(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	if w.down != nil {
		return nil, w.down
	}
	return w.Get(ctx, namespace, name)
}

// Retain implements Identities.
func (*world) Retain(func(string) bool) {}

// Revoked implements Keys.
func (w *world) Revoked(keyID string) bool { return w.revoked[keyID] }

// Review implements authority.Reviewer.
func (w *world) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	user := authority.Subject{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	w.reviewed = append(w.reviewed, user)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: !w.denied[user.Name]}, nil
}

// Token implements Tokens.
func (w *world) Token(_ context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, _ time.Duration) (identity.Token, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return identity.Token{}, w.down
	}
	if err := w.downIn[name.Namespace]; err != nil {
		w.refused = append(w.refused, name)
		return identity.Token{}, err
	}
	wi, ok := w.identities[name.String()]
	if !ok {
		return identity.Token{}, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name.Name)
	}
	if wi.UID != uid {
		return identity.Token{}, apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), name.Name, nil)
	}
	w.tokens, w.bindings = append(w.tokens, identityTokenAsked{name, object}), append(w.bindings, binding)
	return identity.NewToken(w.jwt(wi, w.clock.Now().Add(w.ahead))), nil
}

// Data implements secrets.Data.
func (w *world) Data(_ context.Context, _ types.NamespacedName, _ types.UID, object *v1alpha1.ContextObject) (map[string][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dataAsked++
	w.dataFor = object
	return w.data, w.dataErr
}

// jwt is a token whose signature is not verified here.
func (w *world) jwt(wi *v1alpha1.WorkloadIdentity, at time.Time) string {
	part := func(value any) string {
		content, err := json.Marshal(value)
		if err != nil {
			w.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(content)
	}
	return part(map[string]string{"alg": "ES256", "kid": w.keyID}) + "." + part(map[string]any{
		"iss": wi.Status.Issuer, "sub": wi.Status.Sub, "aud": wi.Spec.Audiences, "iat": at.Unix(), "exp": at.Add(lifetime).Unix(), "jti": rand.Text(),
	}) + ".c2lnbmF0dXJl"
}

func (w *world) addIdentity(namespace, name, uid string) *v1alpha1.WorkloadIdentity {
	wi := &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
		Spec: v1alpha1.WorkloadIdentitySpec{Audiences: []string{"aud"}, TargetSystem: v1alpha1.TargetSystem{
			Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"Config","apiVersion":"a/v1"}`)},
		}},
		Status: v1alpha1.WorkloadIdentityStatus{Sub: "sub:" + uid, Issuer: "https://issuer.example"},
	}
	w.identities[namespace+"/"+name] = wi
	return wi
}

// labelled is a Secret of a user's.
func labelled(namespace, name, identity string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
			Labels:      map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor, "team": "fruit"},
			Annotations: map[string]string{v1alpha1.AnnotationName: identity, v1alpha1.AnnotationNamespace: namespace, "note": "ours"},
		},
		Data: map[string][]byte{"theirs": []byte("kept")},
	}
}

// look has the agent look at a Secret, and returns after how long it looks again.
func (w *world) look(key string) time.Duration {
	w.t.Helper()
	if shown := w.shown; shown != nil {
		w.requestor.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			shown.DeepCopyInto(object.(*corev1.Secret))
			return nil
		}})
		defer func() { w.requestor.Client = w.client }()
	}
	namespace, name, _ := strings.Cut(key, "/")
	result, err := w.requestor.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) secret(key string) *corev1.Secret {
	w.t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	var secret corev1.Secret
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &secret); err != nil {
		w.t.Fatal(err)
	}
	return &secret
}

func (w *world) edit(key string, change func(*corev1.Secret)) {
	w.t.Helper()
	secret := w.secret(key)
	change(secret)
	if err := w.client.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

// event returns the next Event that was written, or "".
func (w *world) event() string {
	select {
	case event := <-w.events.Events:
		return event
	default:
		return ""
	}
}

// relabel gives the namespace of deliveries other labels.
func (w *world) relabel(labels map[string]string) {
	w.t.Helper()
	if err := w.client.Update(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedNamespace, Labels: labels}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }
