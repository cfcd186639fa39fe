package contextdelivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
)

// Index computes the deliveries of each cluster, from what objects need and from the identities and bindings that they name.
type Index struct {
	mu         sync.Mutex
	sources    map[schema.GroupResource]*source
	objects    map[objectKey]*entry
	identities map[types.NamespacedName]identityNow
	bindings   map[types.NamespacedName]bindingNow
	// dependents are the objects whose deliveries depend on an identity or a binding.
	dependents map[dependency]sets.Set[objectKey]
	// claims are the objects that need a Secret; the first one keeps it.
	claims map[secretAt][]claim
	log    *log
}

var _ contexts.Deliveries = &Index{}

type source struct {
	contexts.Source

	fault  string
	filled bool
}

type objectKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// entry is an object with its present deliveries.
type entry struct {
	source  contexts.Source
	object  contexts.Placed
	needs   sets.Set[dependency]
	claim   claim
	claimed sets.Set[secretAt]
	current map[place]*v1alpha1.ContextDelivery
}

// place is a delivery in a cluster, by the names of both.
type place struct{ cluster, name string }

// dependency is an identity or a binding that a delivery depends on.
type dependency struct {
	kind dependencyKind
	name types.NamespacedName
}

type dependencyKind int

const (
	anIdentity dependencyKind = iota
	aBinding
)

// secretAt is a Secret in a cluster.
type secretAt struct {
	cluster string
	secret  types.NamespacedName
}

// claim orders the objects that need one Secret: the one that was created first keeps it. The API sets time and uid, so a user who writes
// an object chooses neither.
type claim struct {
	created time.Time
	uid     types.UID
	key     objectKey
}

func (c claim) compare(other claim) int {
	// Several resources may serve one object, with one uid.
	return cmp.Or(c.created.Compare(other.created), cmp.Compare(c.uid, other.uid), cmp.Compare(c.key.resource.String(), other.key.resource.String()))
}

// identityNow is the part of an identity that is delivered.
type identityNow struct{ provider, config, fault string }

// bindingNow is what a binding refers to: an identity, or if that is empty, a Secret of credentials for a provider.
type bindingNow struct {
	identity types.NamespacedName
	provider string
}

// NewIndex returns an empty Index, whose resource versions begin at a time: no two processes have the same.
func NewIndex(started time.Time) *Index {
	return &Index{
		sources: map[schema.GroupResource]*source{}, objects: map[objectKey]*entry{},
		identities: map[types.NamespacedName]identityNow{}, bindings: map[types.NamespacedName]bindingNow{},
		dependents: map[dependency]sets.Set[objectKey]{}, claims: map[secretAt][]claim{}, log: newLog(uint64(started.UnixNano())),
	}
}

// Follow implements contexts.Deliveries.
func (i *Index) Follow(from contexts.Source, fault string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.sources[from.Resource]
	if before == nil || before.Source != from {
		i.sources[from.Resource] = &source{Source: from, fault: fault}
		return
	}
	if before.fault != fault {
		before.fault = fault
		for key, e := range i.objects {
			if key.resource == from.Resource {
				i.publish(key, e)
			}
		}
	}
}

// Set implements contexts.Deliveries.
func (i *Index) Set(from contexts.Source, object contexts.Placed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.follows(from) {
		return
	}
	key := objectKey{from.Resource, object.Object.Namespace, object.Object.Name}
	e := i.objects[key]
	if e == nil {
		if len(object.Deliveries) == 0 {
			return
		}
		e = &entry{}
		i.objects[key] = e
	}
	e.source, e.object = from, object
	i.update(key, e)
}

// Delete implements contexts.Deliveries.
func (i *Index) Delete(from contexts.Source, namespace, name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.follows(from) {
		i.remove(objectKey{from.Resource, namespace, name})
	}
}

// Filled implements contexts.Deliveries.
func (i *Index) Filled(from contexts.Source) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.follows(from) {
		return
	}
	i.sources[from.Resource].filled = true
	for key, e := range i.objects {
		if key.resource == from.Resource && e.source != from {
			i.remove(key)
		}
	}
}

// Forget implements contexts.Deliveries.
func (i *Index) Forget(resource schema.GroupResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range i.objects {
		if key.resource == resource {
			i.remove(key)
		}
	}
	delete(i.sources, resource)
}

func (i *Index) follows(from contexts.Source) bool {
	current := i.sources[from.Resource]
	return current != nil && current.Source == from
}

// setIdentity takes the present state of an identity; nil if it is gone.
func (i *Index) setIdentity(name types.NamespacedName, now *identityNow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if set(i.identities, name, now) {
		i.refreshDependents(dependency{anIdentity, name})
	}
}

// setBinding takes the present state of a binding; nil if it is gone.
func (i *Index) setBinding(name types.NamespacedName, now *bindingNow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if set(i.bindings, name, now) {
		i.refreshDependents(dependency{aBinding, name})
	}
}

// set reports whether anything has changed.
func set[V comparable](all map[types.NamespacedName]V, name types.NamespacedName, now *V) bool {
	before, existed := all[name]
	if now == nil {
		delete(all, name)
		return existed
	}
	all[name] = *now
	return !existed || before != *now
}

// missing returns a resource whose objects have not been read, or an empty text.
func (i *Index) missing() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for resource, each := range i.sources {
		if !each.filled {
			return resource.String()
		}
	}
	return ""
}

// of returns the deliveries of a cluster by name, none if it is nil, and their resource version.
func (i *Index) of(cluster *clusters.Cluster) ([]*v1alpha1.ContextDelivery, uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if cluster == nil {
		return nil, i.log.last
	}
	found := slices.SortedFunc(maps.Values(i.log.live[cluster.Name]), func(a, b *v1alpha1.ContextDelivery) int { return cmp.Compare(a.Name, b.Name) })
	return found, i.log.last
}

// needed are the deliveries of an object to a cluster, by their Secrets.
func (i *Index) needed(key objectKey, cluster string) []*v1alpha1.ContextDelivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.objects[key]
	if e == nil {
		return nil
	}
	var found []*v1alpha1.ContextDelivery
	for at, each := range e.current {
		if at.cluster == cluster {
			found = append(found, each)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.ContextDelivery) int {
		return cmp.Or(strings.Compare(a.Spec.Secret.Namespace, b.Spec.Secret.Namespace), strings.Compare(a.Spec.Secret.Name, b.Spec.Secret.Name), strings.Compare(a.Name, b.Name))
	})
	return found
}

// get returns a delivery of a cluster; nil without one.
func (i *Index) get(cluster, name string) *v1alpha1.ContextDelivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.live[cluster][name]
}

// after returns what has happened after a resource version; see log.
func (i *Index) after(version uint64) ([]event, <-chan struct{}, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.after(version)
}

func (i *Index) refreshDependents(on dependency) {
	for key := range i.dependents[on].Clone() {
		i.update(key, i.objects[key])
	}
}

func (i *Index) remove(key objectKey) {
	e := i.objects[key]
	if e == nil {
		return
	}
	e.object.Deliveries = nil
	i.update(key, e)
}

// maxNamed bounds the objects that are published again when another one comes or goes that needs the same Secret. With more objects only
// the first is: a ContextKind that gives all objects one Secret must not cost more than one that gives each its own.
const maxNamed = 8

// update computes the deliveries of an object anew, and those of objects that need, or needed, a Secret of it.
func (i *Index) update(key objectKey, e *entry) {
	needs := i.needs(e.object)
	for need := range e.needs.Difference(needs) {
		i.dependents[need].Delete(key)
		if len(i.dependents[need]) == 0 {
			delete(i.dependents, need)
		}
	}
	for need := range needs.Difference(e.needs) {
		if i.dependents[need] == nil {
			i.dependents[need] = sets.New[objectKey]()
		}
		i.dependents[need].Insert(key)
	}
	e.needs = needs
	losers, heirs := i.reclaim(key, e)
	for other := range losers {
		i.publish(other, i.objects[other])
	}
	i.publish(key, e)
	for other := range heirs {
		i.publish(other, i.objects[other])
	}
	if len(e.object.Deliveries) == 0 {
		delete(i.objects, key)
	}
}

// needs returns the dependencies of an object's deliveries.
func (i *Index) needs(object contexts.Placed) sets.Set[dependency] {
	needs := sets.New[dependency]()
	for _, each := range object.Deliveries {
		identity := each.To
		if each.Bound {
			needs.Insert(dependency{aBinding, each.To})
			if identity = i.bindings[each.To].identity; identity.Name == "" {
				continue
			}
		}
		needs.Insert(dependency{anIdentity, identity})
	}
	return needs
}

// reclaim updates the claims of an object, and returns the objects that may lose a Secret by that, and those that may get one. Losers are
// published first, so that a Secret is never published for two objects.
func (i *Index) reclaim(key objectKey, e *entry) (losers, heirs sets.Set[objectKey]) {
	now, claimed := claim{e.object.Created, e.object.Object.UID, key}, sets.New[secretAt]()
	for _, each := range e.object.Deliveries {
		if each.Secret.Name == "" {
			continue
		}
		for _, cluster := range e.object.Clusters {
			claimed.Insert(secretAt{cluster, each.Secret})
		}
	}
	lost, gained := e.claimed.Difference(claimed), claimed.Difference(e.claimed)
	if now.compare(e.claim) != 0 {
		lost, gained = e.claimed, claimed // made anew
	}
	losers, heirs = sets.New[objectKey](), sets.New[objectKey]()
	for at := range lost {
		place, _ := slices.BinarySearchFunc(i.claims[at], e.claim, claim.compare)
		i.claims[at] = slices.Delete(i.claims[at], place, place+1)
		i.touched(at, heirs)
		if len(i.claims[at]) == 0 {
			delete(i.claims, at)
		}
	}
	for at := range gained {
		i.touched(at, losers)
		place, _ := slices.BinarySearchFunc(i.claims[at], now, claim.compare)
		i.claims[at] = slices.Insert(i.claims[at], place, now)
	}
	e.claim, e.claimed = now, claimed
	return losers.Delete(key), heirs.Delete(key)
}

// touched adds the objects whose deliveries depend on the other claims of a Secret.
func (i *Index) touched(at secretAt, others sets.Set[objectKey]) {
	having := i.claims[at]
	if len(having) > maxNamed {
		having = having[:1]
	}
	for _, each := range having {
		others.Insert(each.key)
	}
}

// publish logs the changes of an object's deliveries.
func (i *Index) publish(key objectKey, e *entry) {
	next := map[place]*v1alpha1.ContextDelivery{}
	for _, each := range e.object.Deliveries {
		made := i.make(key, e, each)
		for _, cluster := range e.object.Clusters {
			own := made
			if keeper := i.keeper(key, secretAt{cluster, each.Secret}); keeper != "" && made.Spec.Problem == "" {
				own = made.DeepCopy()
				spoil(own, fmt.Sprintf("%s, created earlier, has the Secret %s, too: it is delivered for that object alone", keeper, each.Secret))
			}
			next[place{cluster, made.Name}] = own
		}
	}
	for at := range e.current {
		if next[at] == nil {
			i.log.remove(at)
		}
	}
	for at, made := range next {
		next[at] = i.log.put(at, made)
	}
	e.current = next
}

// make returns a delivery of an object. Of a binding to a Secret it has the provider alone: the data is requested, and never in a list.
func (i *Index) make(key objectKey, e *entry, each contextkind.Delivery) *v1alpha1.ContextDelivery {
	object := e.object
	made := &v1alpha1.ContextDelivery{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(object.Object, each), CreationTimestamp: metav1.NewTime(object.Created)},
		Spec: v1alpha1.ContextDeliverySpec{
			Secret:        v1alpha1.DeliveredSecret{Namespace: each.Secret.Namespace, Name: each.Secret.Name},
			ContextObject: object.Object,
			Renewal:       object.Renewal,
		},
	}
	spec, fault, to := &made.Spec, cmp.Or(i.sources[key.resource].fault, each.Fault), each.To
	if each.Bound && to.Name != "" {
		spec.CredentialsBinding = &v1alpha1.NamespacedReference{Namespace: to.Namespace, Name: to.Name}
		binding, exists := i.bindings[to]
		switch {
		case !exists:
			spoil(made, cmp.Or(fault, fmt.Sprintf("CredentialsBinding %s does not exist", to)))
			return made
		case binding.identity.Name == "":
			if spec.Provider = binding.provider; fault != "" {
				spoil(made, fault)
			}
			return made
		}
		to = binding.identity
	}
	if to.Name != "" {
		spec.WorkloadIdentity = &v1alpha1.NamespacedReference{Namespace: to.Namespace, Name: to.Name}
		identity, exists := i.identities[to]
		if !exists {
			fault = cmp.Or(fault, fmt.Sprintf("WorkloadIdentity %s does not exist", to))
		}
		spec.Provider, spec.Config = identity.provider, identity.config
		fault = cmp.Or(fault, identity.fault)
	}
	if fault != "" {
		spoil(made, fault)
	}
	return made
}

// spoil replaces what would be delivered with a problem.
func spoil(d *v1alpha1.ContextDelivery, problem string) {
	d.Spec.Provider, d.Spec.Config, d.Spec.Problem = "", "", problem
}

// keeper names the other object that keeps a Secret of an object, or is empty. Writers of an object learn no names of another namespace.
func (i *Index) keeper(key objectKey, at secretAt) string {
	having := i.claims[at]
	switch {
	case len(having) == 0 || having[0].key == key:
		return ""
	case len(having) > maxNamed || having[0].key.namespace != key.namespace:
		return "another object"
	}
	return titleOf(i.objects[having[0].key].object.Object)
}

// titleOf names an object in messages.
func titleOf(object v1alpha1.DeliveryContext) string {
	return object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
}

// nameOf is the name of a delivery. If the Secret is not known, the reference takes its place.
func nameOf(object v1alpha1.DeliveryContext, each contextkind.Delivery) string {
	what := "secret " + each.Secret.String()
	if each.Secret.Name == "" {
		what = "reference " + each.Reference
	}
	sum := sha256.Sum256([]byte(string(object.UID) + " " + what))
	return hex.EncodeToString(sum[:16])
}
