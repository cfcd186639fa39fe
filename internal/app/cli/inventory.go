package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// inventory is what is known of identities and of where they are delivered.
type inventory struct {
	identities []*deliveredIdentity
	// strays are the Secrets whose identity was not found where it was looked for, or that name none.
	strays []*deliveredIdentity
	// notes are what could not be looked at.
	notes []string
	// waiting are pods that are held back until their token exists, as namespace/name: the first of them, and how many.
	waiting      []string
	waitingCount int
	// seen is true if Secrets were read.
	seen bool
}

// deliveredIdentity is an identity and where its tokens are.
type deliveredIdentity struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type,omitempty"`
	Issuer    string   `json:"issuer,omitempty"`
	Subject   string   `json:"subject,omitempty"`
	Audiences []string `json:"audiences,omitempty"`
	// Missing is true if Secrets name it, and it does not exist.
	Missing     bool          `json:"missing,omitempty"`
	LastFailure *eventWarning `json:"lastFailure,omitempty"`
	Deliveries  []*delivery   `json:"deliveries"`
	// Reports are what agents have reported in the status of the identity.
	Reports []v1alpha1.Delivery `json:"reports,omitempty"`

	config []byte // spec.targetSystem.providerConfig
}

// clusters are the two that an identity lives between; they may be one.
type clusters struct {
	identity, workload *api
}

// survey reads identities and where they are delivered: those that are named, or all of a namespace, or of all namespaces
// where it is empty. Objects that the user may not read are left out, with a note.
func (c clusters) survey(ctx context.Context, namespace string, names []string, home string) (*inventory, error) {
	f := &inventory{}
	byName := map[types.NamespacedName]*deliveredIdentity{}
	add := func(wi *v1alpha1.WorkloadIdentity) {
		i := &deliveredIdentity{
			Namespace: wi.Namespace, Name: wi.Name, Type: wi.Spec.TargetSystem.Type, Deliveries: []*delivery{},
			Issuer: wi.Status.Issuer, Subject: wi.Status.Sub, Audiences: wi.Spec.Audiences,
			Reports: wi.Status.Deliveries,
		}
		if config := wi.Spec.TargetSystem.ProviderConfig; config != nil {
			i.config = config.Raw
		}
		f.identities = append(f.identities, i)
		byName[types.NamespacedName{Namespace: wi.Namespace, Name: wi.Name}] = i
	}
	if err := c.readIdentities(ctx, namespace, names, add); err != nil {
		return nil, err
	}
	wanted := func(identity types.NamespacedName) bool {
		return byName[identity] != nil || len(names) == 0 && (namespace == "" || identity.Namespace == namespace)
	}
	bySecret := map[types.NamespacedName]*delivery{}
	ownerOf := func(identity types.NamespacedName) *deliveredIdentity {
		if !wanted(identity) {
			return nil
		}
		owner := byName[identity]
		if owner == nil {
			owner = &deliveredIdentity{Namespace: identity.Namespace, Name: identity.Name, Missing: true}
			byName[identity], f.strays = owner, append(f.strays, owner)
		}
		return owner
	}
	place := func(secret *corev1.Secret) {
		identity, d := deliveryOf(secret)
		owner := ownerOf(identity)
		if owner == nil {
			return
		}
		owner.Deliveries = append(owner.Deliveries, d)
		bySecret[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = d
	}
	where, err := widest("Secrets", home, func(in string) error {
		return each(ctx, listing{client: c.workload.core, namespace: in, resource: "secrets", labels: v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor},
			func(page *corev1.SecretList) {
				for i := range page.Items {
					place(&page.Items[i])
				}
			})
	})
	if err != nil {
		return nil, fmt.Errorf("list Secrets that carry tokens: %w", err)
	}
	f.note(where.note)
	f.seen = !where.nowhere
	var needs map[types.NamespacedName][]accountDelivery
	// A Secret that was not looked for is not missing.
	if f.seen {
		if needs, err = f.findAccounts(ctx, c.workload, cmp.Or(where.namespace, home), bySecret, ownerOf); err != nil {
			return nil, err
		}
	}
	if err := f.findPods(ctx, c.workload, where.namespace, home, bySecret); err != nil {
		return nil, err
	}
	if err := f.findWarnings(ctx, c, home, byName, bySecret, needs); err != nil {
		return nil, err
	}
	f.sort()
	return f, nil
}

func (c clusters) readIdentities(ctx context.Context, namespace string, names []string, add func(*v1alpha1.WorkloadIdentity)) error {
	for _, name := range names {
		wi, err := c.identity.workloadIdentity(ctx, namespace, name)
		if err != nil {
			return err
		}
		add(wi)
	}
	if len(names) > 0 {
		return nil
	}
	return each(ctx, listing{client: c.identity.tokens, namespace: namespace, resource: "workloadidentities"}, func(page *v1alpha1.WorkloadIdentityList) {
		for i := range page.Items {
			add(&page.Items[i])
		}
	})
}

func (f *inventory) note(note string) {
	if note != "" && !slices.Contains(f.notes, note) {
		f.notes = append(f.notes, note)
	}
}

// findPods counts the pods that mount each Secret.
func (f *inventory) findPods(ctx context.Context, workload *api, namespace, home string, bySecret map[types.NamespacedName]*delivery) error {
	if len(bySecret) == 0 {
		return nil
	}
	count := func(page *corev1.PodList) {
		for i := range page.Items {
			f.countPod(&page.Items[i], bySecret)
		}
	}
	for _, d := range bySecret {
		d.Pods = new(int)
	}
	where, err := widest("pods", cmp.Or(namespace, home), func(in string) error {
		return each(ctx, listing{client: workload.core, namespace: in, resource: "pods", fields: "status.phase!=Succeeded,status.phase!=Failed"}, count)
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if where.nowhere {
		for _, d := range bySecret {
			d.Pods = nil
		}
	}
	f.note(where.note)
	return nil
}

func (f *inventory) countPod(pod *corev1.Pod, bySecret map[types.NamespacedName]*delivery) {
	ours := false
	for _, name := range mounts(pod) {
		d := bySecret[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
		if d == nil {
			continue
		}
		ours = true
		*d.Pods++
		if len(d.PodNames) < maxPodNames {
			d.PodNames = append(d.PodNames, pod.Name)
		}
	}
	if ours && waitsForToken(pod) {
		f.waitingCount++
		if len(f.waiting) < maxPodNames {
			f.waiting = append(f.waiting, pod.Namespace+"/"+pod.Name)
		}
	}
}

// findWarnings keeps the newest Warning on each Secret, on the service account that needs it, and on each identity.
func (f *inventory) findWarnings(ctx context.Context, c clusters, home string, identities map[types.NamespacedName]*deliveredIdentity, secrets map[types.NamespacedName]*delivery, needs map[types.NamespacedName][]accountDelivery) error {
	keep := func(page *corev1.EventList) {
		for i := range page.Items {
			event := &page.Items[i]
			about := types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
			if d := secrets[about]; d != nil && event.InvolvedObject.Kind == "Secret" {
				d.LastFailure = newer(d.LastFailure, event)
			}
			if event.InvolvedObject.Kind == "ServiceAccount" {
				for _, need := range needs[about] {
					if need.concerns(event, needs[about]) {
						need.delivery.LastFailure = newer(need.delivery.LastFailure, event)
					}
				}
			}
			if identity := identities[about]; identity != nil && event.InvolvedObject.Kind == "WorkloadIdentity" {
				identity.LastFailure = newer(identity.LastFailure, event)
			}
		}
	}
	kinds := map[string]*api{"Secret": c.workload, "WorkloadIdentity": c.identity}
	if len(needs) > 0 {
		kinds["ServiceAccount"] = c.workload
	}
	for kind, from := range kinds {
		where, err := widest("Events", home, func(in string) error {
			return each(ctx, listing{client: from.core, namespace: in, resource: "events", fields: "type=Warning,involvedObject.kind=" + kind}, keep)
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("list Events: %w", err)
		}
		f.note(where.note)
	}
	return nil
}

func (f *inventory) sort() {
	order := func(a, b *deliveredIdentity) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	}
	slices.SortFunc(f.strays, order)
	f.identities = append(f.identities, f.strays...)
	for _, i := range f.identities {
		slices.SortFunc(i.Deliveries, func(a, b *delivery) int { return strings.Compare(a.Namespace+"/"+a.Secret, b.Namespace+"/"+b.Secret) })
	}
	slices.Sort(f.notes)
}
