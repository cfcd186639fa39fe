package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/issuer"
)

// Kind is a kind of objects that token requests may name.
type Kind struct {
	*contextkind.Kind

	// disputed names the ContextKind that has the same claim for another resource: then tokens are issued by neither.
	disputed string
	read     map[schema.GroupVersionResource]*objects
}

// Object is an object of such a kind.
type Object struct {
	// UID is its uid.
	UID types.UID

	kind *Kind
	kept *object
	// related are the objects that follow from it, in the order of its ContextKind, as they were when it was found.
	related []related
	// lent is what related objects lend to it.
	lent contextkind.Uses
}

// related is the one object that follows from another, or why it is not known: an API error (503), or there is not just one.
type related struct {
	*object
	err error
}

// Find returns an object, with what is related to it at the time. Its errors are API errors: 404 if it does not exist, 503 while that is not known.
func (k *Kind) Find(namespace, name string) (Object, error) {
	resource := k.Resource.GroupResource()
	if dispute := k.dispute(); dispute != "" {
		return Object{}, apierrors.NewConflict(resource, name, errors.New(dispute))
	}
	reader := k.read[k.Resource]
	if reader == nil {
		return Object{}, unknown("%s are not followed", resource)
	}
	kept, err := reader.get(namespace, name)
	switch {
	case err != nil:
		return Object{}, err
	case kept == nil:
		return Object{}, apierrors.NewNotFound(resource, name)
	}
	if err := k.mistaken(kept); err != nil {
		return Object{}, apierrors.NewConflict(resource, name, err)
	}
	found := Object{UID: kept.UID, kind: k, kept: kept}
	for i, to := range k.Related {
		kept, err := k.relatedBy(to, found.kept.uses.Keys[i])
		found.related = append(found.related, related{kept, err})
	}
	return found, found.borrow()
}

// dispute returns why objects of the kind are not used, or an empty text.
func (k *Kind) dispute() string {
	if k.disputed == "" {
		return ""
	}
	return fmt.Sprintf("ContextKind %s conflicts with ContextKind %s, so neither is used: delete one of them", k.Name(), k.disputed)
}

// mistaken returns an error if an object is of another kind than its ContextKind states.
func (k *Kind) mistaken(kept *object) error {
	if kept.kind == k.Object.Kind {
		return nil
	}
	return fmt.Errorf("it is of kind %s, and not %s as ContextKind %s has it", kept.kind, k.Object.Kind, k.Name())
}

// Uses returns an error unless the object refers to an identity.
func (o Object) Uses(identity types.NamespacedName) error {
	if slices.Contains(o.kept.uses.Identities, identity) || slices.Contains(o.lent.Identities, identity) {
		return nil
	}
	return fmt.Errorf("it does not refer to WorkloadIdentity %s, by ContextKind %s%s", identity, o.kind.Name(), because(cmp.Or(o.kept.uses.Fault, o.lent.Fault)))
}

// Bindings are the CredentialsBindings that the object refers to.
func (o Object) Bindings() []types.NamespacedName {
	return slices.Concat(o.kept.uses.Bindings, o.lent.Bindings)
}

// Identities are the identities that the object refers to itself.
func (o Object) Identities() []types.NamespacedName {
	return slices.Concat(o.kept.uses.Identities, o.lent.Identities)
}

// Fault is why some of its references are not known; empty if all are.
func (o Object) Fault() string { return cmp.Or(o.kept.uses.Fault, o.lent.Fault) }

// Clusters are the workload clusters that the object is on.
func (o Object) Clusters() []string { return o.kept.uses.Clusters }

// Renewal is when new tokens were requested by an annotation of the object; empty without it.
func (o Object) Renewal() string { return o.kept.renewal }

// ContextKind is the name of its ContextKind.
func (o Object) ContextKind() string { return o.kind.Name() }

// Own is the object without what others lend to it.
func (o Object) Own() Object {
	o.lent = contextkind.Uses{}
	return o
}

// Relation is what follows from an object.
type Relation struct {
	Claim    string
	Resource schema.GroupResource
	// Lends reports whether the object uses what the related one uses.
	Lends bool
	// Namespace and Name are those of the related object; empty if there is not just one.
	Namespace, Name string
}

// Relations are what follows from the object. The error is 503 where one is not known.
func (o Object) Relations() ([]Relation, error) {
	var relations []Relation
	for i, related := range o.kind.Related {
		relation := Relation{Claim: related.Claim, Resource: related.Resource.GroupResource(), Lends: related.Lends}
		found := o.related[i]
		if status := apierrors.APIStatus(nil); errors.As(found.err, &status) {
			return nil, found.err
		} else if found.err == nil {
			relation.Namespace, relation.Name = found.Namespace, found.Name
		}
		relations = append(relations, relation)
	}
	return relations, nil
}

// Local returns the object with only those references that its namespace bounds: without what other objects lend, and for an object without
// a namespace none.
func (o Object) Local() Object {
	o.lent = contextkind.Uses{}
	if o.kept.Namespace == "" {
		kept := *o.kept
		kept.uses.Identities, kept.uses.Bindings = nil, nil
		o.kept = &kept
	}
	return o
}

// borrow adds what related objects lend. The error is 503 while one is not known. If one is missing, the fault is kept.
func (o *Object) borrow() error {
	for i, related := range o.kind.Related {
		if !related.Lends {
			continue
		}
		found := o.related[i]
		if status := apierrors.APIStatus(nil); errors.As(found.err, &status) {
			return found.err
		} else if found.err != nil {
			o.lent.Fault = found.err.Error()
			continue
		}
		o.lent.Identities = append(o.lent.Identities, found.uses.Identities...)
		o.lent.Bindings = append(o.lent.Bindings, found.uses.Bindings...)
		o.lent.Fault = cmp.Or(o.lent.Fault, found.uses.Fault)
	}
	return nil
}

// On reports whether the object is on a workload cluster.
func (o Object) On(cluster string) bool { return slices.Contains(o.kept.uses.Clusters, cluster) }

// Nowhere returns why the clusters of the object are not known, so that it is on none; empty if they are known.
func (o Object) Nowhere() string { return o.kept.uses.ClustersFault }

// Claims returns the object, unless its claim is that of the caller's cluster, and its related objects. The error is 503 while one is not
// known, and 409 while one is not there.
func (o Object) Claims() ([]issuer.Object, error) {
	var claims []issuer.Object
	if o.kind.Claim != contextkind.ClusterClaim {
		claims = append(claims, claimOf(o.kind.Claim, o.kept))
	}
	for i, related := range o.kind.Related {
		found := o.related[i]
		if status := apierrors.APIStatus(nil); errors.As(found.err, &status) {
			return nil, found.err
		} else if found.err != nil {
			return nil, apierrors.NewConflict(o.kind.Resource.GroupResource(), o.kept.Name, fmt.Errorf("the claim %s of ContextKind %s is not known: %w", related.Claim, o.kind.Name(), found.err))
		}
		claims = append(claims, claimOf(related.Claim, found.object))
	}
	return claims, nil
}

func (k *Kind) relatedBy(related contextkind.Related, key contextkind.Key) (*object, error) {
	if key.Fault != "" {
		return nil, errors.New(key.Fault)
	}
	reader := k.read[related.Resource]
	if reader == nil {
		return nil, unknown("%s are not followed", related.Resource.GroupResource())
	}
	return reader.related(related.Key.Text, key.Text)
}

func claimOf(claim string, kept *object) issuer.Object {
	return issuer.Object{Claim: claim, Namespace: kept.Namespace, Name: kept.Name, UID: string(kept.UID)}
}

func because(fault string) string {
	if fault == "" {
		return ""
	}
	return " (" + fault + ")"
}
