package deliverytest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/identity"
)

// Lifetime is that of tokens.
const Lifetime = time.Hour

// IdentityCluster is the identity cluster: its objects, its answers, and the requests that it got.
type IdentityCluster struct {
	t     testing.TB
	clock clock.PassiveClock
	mu    *sync.Mutex

	Identities  map[string]*v1alpha1.WorkloadIdentity // by namespace/name
	Down        error                                 // the answer to every request
	DownIn      map[string]error                      // the answers to requests for tokens, by namespace
	Denied      map[string]bool                       // users who may not use objects
	RevokedKeys map[string]bool
	KeyID       string        // of the key that signs
	Ahead       time.Duration // of the issuer's clock

	Deliveries        []*identityv1alpha1.ContextDelivery
	DeliveriesUnknown bool // they have not been read yet

	Data    map[string][]byte // of the Secret of each binding
	DataErr error             // the answer to requests for it

	Tokens   []TokenRequest         // that were answered, in order
	Refused  []types.NamespacedName // identities whose requests DownIn has answered
	Reviewed []authority.Subject    // in order
	DataFor  []*v1alpha1.ContextObject
}

// TokenRequest is a request for a token that was answered.
type TokenRequest struct {
	Identity, Binding types.NamespacedName
	Context           *v1alpha1.ContextObject
}

func newIdentityCluster(t testing.TB, clock clock.PassiveClock) IdentityCluster {
	return IdentityCluster{
		t: t, clock: clock, mu: &sync.Mutex{}, KeyID: "k1",
		Identities: map[string]*v1alpha1.WorkloadIdentity{}, DownIn: map[string]error{}, Denied: map[string]bool{}, RevokedKeys: map[string]bool{},
	}
}

// AddIdentity makes an identity for AWS, or replaces it.
func (c *IdentityCluster) AddIdentity(namespace, name, uid string) *v1alpha1.WorkloadIdentity {
	wi := &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
		Spec: v1alpha1.WorkloadIdentitySpec{Audiences: []string{"aud"}, TargetSystem: v1alpha1.TargetSystem{
			Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"Config","apiVersion":"a/v1"}`)},
		}},
		Status: v1alpha1.WorkloadIdentityStatus{Sub: "sub:" + uid, Issuer: "https://issuer.example"},
	}
	c.Identities[namespace+"/"+name] = wi
	return wi
}

// identities are those that a cache may have: it answers during an outage, and reads of the API do not.
type identities struct{ *IdentityCluster }

func (c identities) Get(_ context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	if wi, ok := c.Identities[namespace+"/"+name]; ok {
		return wi, nil
	}
	if c.Down != nil {
		return nil, c.Down
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name)
}

// Read is not affected by DownIn: no webhook and no policy of a namespace prevents reads.
func (c identities) Read(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	if c.Down != nil {
		return nil, c.Down
	}
	return c.Get(ctx, namespace, name)
}

func (identities) Retain(func(string) bool) {}

type keys struct{ *IdentityCluster }

func (c keys) Revoked(keyID string) bool { return c.RevokedKeys[keyID] }

type reviews struct{ *IdentityCluster }

func (c reviews) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	user := authority.Subject{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	c.Reviewed = append(c.Reviewed, user)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: !c.Denied[user.Name]}, nil
}

type tokens struct{ *IdentityCluster }

func (c tokens) Token(_ context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, _ time.Duration) (identity.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Down != nil {
		return identity.Token{}, c.Down
	}
	if err := c.DownIn[name.Namespace]; err != nil {
		c.Refused = append(c.Refused, name)
		return identity.Token{}, err
	}
	wi, ok := c.Identities[name.String()]
	if !ok {
		return identity.Token{}, apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), name.Name)
	}
	if wi.UID != uid {
		return identity.Token{}, apierrors.NewConflict(v1alpha1.Resource("workloadidentities"), name.Name, nil)
	}
	c.Tokens = append(c.Tokens, TokenRequest{name, binding, object})
	return identity.NewToken(c.jwt(wi, c.clock.Now().Add(c.Ahead))), nil
}

// jwt is a token whose signature is not verified here.
func (c tokens) jwt(wi *v1alpha1.WorkloadIdentity, at time.Time) string {
	part := func(value any) string {
		content, err := json.Marshal(value)
		if err != nil {
			c.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(content)
	}
	return part(map[string]string{"alg": "ES256", "kid": c.KeyID}) + "." + part(map[string]any{
		"iss": wi.Status.Issuer, "sub": wi.Status.Sub, "aud": wi.Spec.Audiences, "iat": at.Unix(), "exp": at.Add(Lifetime).Unix(), "jti": rand.Text(),
	}) + ".c2lnbmF0dXJl"
}

type data struct{ *IdentityCluster }

func (c data) Data(_ context.Context, _ types.NamespacedName, _ types.UID, object *v1alpha1.ContextObject) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.DataFor = append(c.DataFor, object)
	return c.IdentityCluster.Data, c.DataErr
}

type deliveries struct{ *IdentityCluster }

func (c deliveries) Known() bool { return !c.DeliveriesUnknown }

func (c deliveries) Of(secret types.NamespacedName) []*identityv1alpha1.ContextDelivery {
	return slices.DeleteFunc(slices.Clone(c.Deliveries), func(d *identityv1alpha1.ContextDelivery) bool {
		return d.Spec.Secret != (identityv1alpha1.DeliveredSecret{Namespace: secret.Namespace, Name: secret.Name})
	})
}

func (c deliveries) Named(name string) *identityv1alpha1.ContextDelivery {
	if i := slices.IndexFunc(c.Deliveries, func(d *identityv1alpha1.ContextDelivery) bool { return d.Name == name }); i >= 0 {
		return c.Deliveries[i]
	}
	return nil
}

func (c deliveries) Unplaced(object types.UID) bool {
	return slices.ContainsFunc(c.Deliveries, func(d *identityv1alpha1.ContextDelivery) bool {
		return d.Spec.Secret.Name == "" && d.Spec.ContextObject.UID == object
	})
}

func (deliveries) Secrets(string) []types.NamespacedName { return nil }
