// Package contextkind evaluates ContextKinds. In go a ContextKind, which is compiled once, and objects as the API serves them; out come the
// identities that an object uses, its clusters and deliveries, and the keys by which related objects are found. It reads no API, and trusts
// no object: the cost and the result of an expression are bounded.
package contextkind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/wording"
)

// maxFault bounds the text of an error of an object.
const maxFault = 500

// Kind is a compiled ContextKind.
type Kind struct {
	// Object is the kind of the objects.
	Object schema.GroupVersionKind
	// Resource is where they are read.
	Resource schema.GroupVersionResource
	// Namespaced reports whether they have a namespace.
	Namespaced bool
	// Claim names an object in a token.
	Claim string
	// Related are the objects that are claimed beside it.
	Related []Related
	// Delivers reports whether any reference has a delivery.
	Delivers bool

	clusters   *expression
	references []reference
	// usage and expires are nil without these expressions.
	usage, expires *expression
}

// Related is a kind of objects that follow from another.
type Related struct {
	Claim    string
	Resource schema.GroupVersionResource
	// Key finds candidates: two with the same text of it have the same keys.
	Key CandidateKey
	// Lends reports whether the object uses what the related one uses.
	Lends bool

	of expression
}

// CandidateKey is the key of candidates.
type CandidateKey struct {
	Text string

	expression expression
}

type reference struct {
	name  string
	names expression
	// bound is set if the names are those of CredentialsBindings, and not of identities.
	bound bool
	// deliver is nil if nothing is delivered.
	deliver *deliver
}

// Uses is what an object uses.
type Uses struct {
	// Identities are those that it refers to, and Bindings the CredentialsBindings.
	Identities, Bindings []types.NamespacedName
	// Fault is why a reference failed; empty if none did.
	Fault string
	// Clusters are the workload clusters that it is on, by name, and ClustersFault is why they are not known.
	Clusters      []string
	ClustersFault string
	// Keys are those of the related objects, in their order.
	Keys []Key
	// Deliveries are the Secrets that it needs in its clusters, in their order.
	Deliveries []Delivery
}

// Bindings returns the CredentialsBindings that an object refers to itself, and why others are not known.
func (k *Kind) Bindings(ctx context.Context, object map[string]any, namespace string) ([]types.NamespacedName, error) {
	var found []types.NamespacedName
	for _, each := range k.references {
		if !each.bound {
			continue
		}
		names, err := each.of(ctx, object, namespace)
		if err != nil {
			return nil, k.fault("references["+each.name+"].credentialsBindings", err)
		}
		found = append(found, names...)
	}
	return found, nil
}

// Key is the key of a related object, or why it is not known.
type Key struct{ Text, Fault string }

// Uses returns what an object uses. A reference that fails does not affect the others.
func (k *Kind) Uses(ctx context.Context, object map[string]any, namespace string) Uses {
	var found Uses
	var faults []string
	for _, each := range k.references {
		names, err := each.of(ctx, object, namespace)
		if err != nil {
			faults = append(faults, fmt.Sprintf("reference %s: %v", each.name, err))
		}
		found.Deliveries = append(found.Deliveries, each.deliveries(ctx, object, names, err)...)
		referred := &found.Identities
		if each.bound {
			referred = &found.Bindings
		}
		for _, name := range names {
			if !slices.Contains(*referred, name) {
				*referred = append(*referred, name)
			}
		}
	}
	found.Deliveries = bounded(unambiguous(found.Deliveries))
	found.Fault = wording.AbbreviateTo(strings.Join(faults, "; "), maxFault)
	if k.clusters != nil {
		var err error
		if found.Clusters, err = k.clusters.texts(ctx, object); err != nil {
			found.ClustersFault = wording.AbbreviateTo(err.Error(), maxFault)
		}
	}
	for _, each := range k.Related {
		key, err := each.of.text(ctx, object)
		if err != nil {
			found.Keys = append(found.Keys, Key{Fault: wording.AbbreviateTo(err.Error(), maxFault)})
			continue
		}
		found.Keys = append(found.Keys, Key{Text: key})
	}
	return found
}

// of returns the names that an object refers to. A name of another namespace than the object's is an error: users who write objects of a
// namespace have no right to identities and bindings of others.
func (r reference) of(ctx context.Context, object map[string]any, namespace string) ([]types.NamespacedName, error) {
	texts, err := r.names.texts(ctx, object)
	if err != nil {
		return nil, err
	}
	names := make([]types.NamespacedName, 0, len(texts))
	for _, text := range texts {
		space, name, full := strings.Cut(text, "/")
		if !full {
			space, name = namespace, text
		}
		switch {
		case space == "":
			return nil, fmt.Errorf("%q names no namespace: for an object without one it must be NAMESPACE/NAME", wording.Abbreviate(text))
		case len(utilvalidation.IsDNS1123Label(space)) > 0 || len(utilvalidation.IsDNS1123Subdomain(name)) > 0:
			return nil, fmt.Errorf("%q is not a name", wording.Abbreviate(text))
		case namespace != "" && space != namespace:
			return nil, fmt.Errorf("%q is in another namespace than the object", wording.Abbreviate(text))
		}
		names = append(names, types.NamespacedName{Namespace: space, Name: name})
	}
	return names, nil
}

// Of returns the key of a candidate, or an empty one if the candidate is not related to any object.
func (k CandidateKey) Of(ctx context.Context, candidate map[string]any) (string, error) {
	return k.expression.text(ctx, candidate)
}

// Conflict returns the claim or kind that two ContextKinds have for different resources, or an empty text. A claim must stand for one
// resource: a relying party cannot distinguish two.
func (k *Kind) Conflict(other *Kind) string {
	if k.Object == other.Object && k.Resource.GroupResource() != other.Resource.GroupResource() {
		return "the kind " + k.Object.Kind
	}
	theirs := other.claimed()
	for claim, resource := range k.claimed() {
		if found, ok := theirs[claim]; ok && found != resource {
			return "the claim " + claim
		}
	}
	return ""
}

// claimed maps each claim to its resource.
func (k *Kind) claimed() map[string]schema.GroupResource {
	claims := map[string]schema.GroupResource{k.Claim: k.Resource.GroupResource()}
	for _, related := range k.Related {
		claims[related.Claim] = related.Resource.GroupResource()
	}
	return claims
}
