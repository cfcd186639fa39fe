package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
)

// The identity that a proof makes, and the only audience of its tokens: no relying party accepts it.
const (
	proofName     = "up-check"
	proofAudience = "credence-up"
)

var workloadIdentities = schema.GroupVersionResource{Group: tokenGroup, Version: version, Resource: "workloadidentities"}

// Proof is how tokens are verified: as any relying party of the issuer does it.
type Proof struct {
	Issuer identity.Issuer
	// Client fetches the issuer's documents.
	Client *http.Client
	Now    func() time.Time
}

// ErrNoSigningKey means that no token can be issued now, on purpose: a key was revoked, and no spare may sign yet.
var ErrNoSigningKey = errors.New("no key may sign")

// Prove creates a WorkloadIdentity, requests a token for it, verifies the token through the issuer's documents, and
// deletes the identity. It repeats what fails until ctx ends, as caches and documents are still being filled; not so
// ErrNoSigningKey.
func (c *Client) Prove(ctx context.Context, proof Proof) error {
	identities := c.objects.Resource(workloadIdentities).Namespace(Namespace)
	proved := c.repeat(ctx, func(err error) bool { return !errors.Is(err, ErrNoSigningKey) }, func() error { return c.prove(ctx, identities, proof) })
	if proved != nil && !errors.Is(proved, ErrNoSigningKey) {
		return proved
	}
	err := c.repeat(ctx, temporary, func() error { return identities.Delete(ctx, proofName, metav1.DeleteOptions{}) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete WorkloadIdentity %s/%s: %w", Namespace, proofName, err)
	}
	return proved
}

func (c *Client) prove(ctx context.Context, identities dynamic.ResourceInterface, proof Proof) error {
	// One that an interrupted start left is as good.
	_, err := identities.Create(ctx, proofIdentity(), metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create WorkloadIdentity %s/%s: %w", Namespace, proofName, err)
	}
	response, err := identities.Create(ctx, tokenRequest(), metav1.CreateOptions{}, "token")
	if apierrors.IsServiceUnavailable(err) && c.signless(ctx) {
		return ErrNoSigningKey
	}
	if err != nil {
		return fmt.Errorf("request a token for WorkloadIdentity %s/%s: %w", Namespace, proofName, err)
	}
	text, _, err := unstructured.NestedString(response.Object, "status", "token")
	if err != nil || text == "" {
		return fmt.Errorf("request a token for WorkloadIdentity %s/%s: the response has none", Namespace, proofName)
	}
	return proof.verify(ctx, identity.NewToken(text))
}

func (p Proof) verify(ctx context.Context, token identity.Token) error {
	result, err := relyingparty.Verify(ctx, token.Reveal(), relyingparty.Options{
		Client: p.Client, Issuer: p.Issuer, Audience: proofAudience, Clock: p.Now,
	})
	if err != nil {
		return fmt.Errorf("verify a token through %s: %w", p.Issuer.ConfigurationURL(), err)
	}
	if result.Valid() {
		return nil
	}
	var details []string
	for _, finding := range result.Findings {
		details = append(details, finding.Detail)
	}
	return errors.New("a token of WorkloadIdentity " + Namespace + "/" + proofName + " is not accepted: " + strings.Join(details, "; "))
}

func proofIdentity() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": tokenGroup + "/" + version,
		"kind":       "WorkloadIdentity",
		"metadata":   map[string]any{"name": proofName, "namespace": Namespace},
		"spec": map[string]any{
			"audiences":    []any{proofAudience},
			"targetSystem": map[string]any{"type": "generic"},
		},
	}}
}

func tokenRequest() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": tokenGroup + "/" + version,
		"kind":       "TokenRequest",
		"metadata":   map[string]any{"name": proofName, "namespace": Namespace},
		"spec":       map[string]any{},
	}}
}
