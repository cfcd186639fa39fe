package inventory

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
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Report is what is known of identities and of where they are delivered.
type Report struct {
	Identities []*Identity `json:"identities"`
	// Notes are what could not be looked at.
	Notes []string `json:"notes,omitempty"`
	// Narrow is the note about lists of one namespace, as those of all are not allowed. A user who has chosen the
	// namespace does not need it.
	Narrow string `json:"-"`
	// Waiting are pods that are held back until their token exists, as namespace/name: the first of them, and how many.
	Waiting      []string `json:"-"`
	WaitingCount int      `json:"-"`
	// Seen is true if Secrets were read.
	Seen bool `json:"-"`

	// strays are the Secrets whose identity was not found where it was looked for, or that name none.
	strays   []*Identity
	narrowed []string // what Narrow names
}

// Identity is an identity and where its tokens are.
type Identity struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type,omitempty"`
	Issuer    string   `json:"issuer,omitempty"`
	Subject   string   `json:"subject,omitempty"`
	Audiences []string `json:"audiences,omitempty"`
	// Missing is true if Secrets name it, and it does not exist.
	Missing     bool        `json:"missing,omitempty"`
	LastFailure *Warning    `json:"lastFailure,omitempty"`
	Deliveries  []*Delivery `json:"deliveries"`
	// Reports are what agents have reported in the status of the identity.
	Reports []v1alpha1.Delivery `json:"reports,omitempty"`

	// Config is spec.targetSystem.providerConfig.
	Config []byte `json:"-"`
}

// Gone reports whether an agent has found that the identity does not exist. One that is missing otherwise may be in another cluster.
func (i *Identity) Gone() bool {
	return i.Missing && slices.ContainsFunc(i.Deliveries, func(d *Delivery) bool {
		return d.OrphanedSince != nil || d.LastFailure != nil && d.LastFailure.Reason == "IdentityMissing"
	})
}

// Read reads identities and where they are delivered: those that are named, or all of a namespace, or of all namespaces
// where it is empty. Objects that the user may not read are left out, with a note.
func Read(ctx context.Context, c cluster.Both, namespace string, names []string, labels, home string) (*Report, error) {
	f := &Report{Identities: []*Identity{}}
	byName := map[types.NamespacedName]*Identity{}
	add := func(wi *v1alpha1.WorkloadIdentity) {
		i := &Identity{
			Namespace: wi.Namespace, Name: wi.Name, Type: wi.Spec.TargetSystem.Type, Deliveries: []*Delivery{},
			Issuer: wi.Status.Issuer, Subject: wi.Status.Sub, Audiences: wi.Spec.Audiences,
			Reports: wi.Status.Deliveries,
		}
		if config := wi.Spec.TargetSystem.ProviderConfig; config != nil {
			i.Config = config.Raw
		}
		f.Identities = append(f.Identities, i)
		byName[types.NamespacedName{Namespace: wi.Namespace, Name: wi.Name}] = i
	}
	if err := readIdentities(ctx, c.Identity, namespace, names, labels, add); err != nil {
		return nil, err
	}
	wanted := func(identity types.NamespacedName) bool {
		return byName[identity] != nil || len(names) == 0 && labels == "" && (namespace == "" || identity.Namespace == namespace)
	}
	bySecret := map[types.NamespacedName]*Delivery{}
	ownerOf := func(identity types.NamespacedName) *Identity {
		if !wanted(identity) {
			return nil
		}
		owner := byName[identity]
		if owner == nil {
			owner = &Identity{Namespace: identity.Namespace, Name: identity.Name, Missing: true}
			byName[identity], f.strays = owner, append(f.strays, owner)
		}
		return owner
	}
	place := func(secret *corev1.Secret) {
		if _, static := tokensecret.CopiedInto(secret); static {
			return // credentials of a CredentialsBinding, and no token
		}
		identity, d := DeliveryOf(secret)
		owner := ownerOf(identity)
		if owner == nil {
			return
		}
		owner.Deliveries = append(owner.Deliveries, d)
		bySecret[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = d
	}
	where, err := cluster.Widest("Secrets", home, func(in string) error {
		return cluster.Each(ctx, c.Workload, cluster.Listing{Namespace: in, Resource: "secrets", Labels: v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor}, place)
	})
	if err != nil {
		return nil, fmt.Errorf("list Secrets that carry tokens: %w", err)
	}
	f.looked("Secrets", where)
	f.Seen = !where.Nowhere
	var needs map[types.NamespacedName][]accountDelivery
	// A Secret that was not looked for is not missing.
	if f.Seen {
		if needs, err = f.findAccounts(ctx, c.Workload, cmp.Or(where.Namespace, home), bySecret, ownerOf); err != nil {
			return nil, err
		}
	}
	if err := f.findPods(ctx, c.Workload, where.Namespace, home, bySecret); err != nil {
		return nil, err
	}
	if err := f.findWarnings(ctx, c, home, byName, bySecret, needs); err != nil {
		return nil, err
	}
	f.sort()
	return f, nil
}

func readIdentities(ctx context.Context, from *cluster.API, namespace string, names []string, labels string, add func(*v1alpha1.WorkloadIdentity)) error {
	for _, name := range names {
		wi, err := from.Identity(ctx, namespace, name)
		if err != nil {
			return err
		}
		add(wi)
	}
	if len(names) > 0 {
		return nil
	}
	where := cluster.Identities(namespace)
	where.Labels = labels
	return cluster.Each(ctx, from, where, add)
}

// Note adds what could not be looked at, once.
func (f *Report) Note(note string) {
	if note != "" && !slices.Contains(f.Notes, note) {
		f.Notes = append(f.Notes, note)
	}
}

// looked notes where a list was looked at. Lists of one namespace make one note together.
func (f *Report) looked(what string, where cluster.Scope) {
	if where.Namespace == "" {
		f.Note(where.Note)
		return
	}
	if !slices.Contains(f.narrowed, what) {
		f.narrowed = append(f.narrowed, what)
	}
	slices.Sort(f.narrowed)
	f.Narrow = fmt.Sprintf("only the %s of namespace %s were looked at: you may not list those of all namespaces", strings.Join(f.narrowed, ", "), where.Namespace)
}

// findPods counts the pods that mount each Secret.
func (f *Report) findPods(ctx context.Context, workload *cluster.API, namespace, home string, bySecret map[types.NamespacedName]*Delivery) error {
	if len(bySecret) == 0 {
		return nil
	}
	count := func(pod *corev1.Pod) { f.countPod(pod, bySecret) }
	for _, d := range bySecret {
		d.Pods = new(int)
	}
	where, err := cluster.Widest("pods", cmp.Or(namespace, home), func(in string) error {
		return cluster.Each(ctx, workload, cluster.Listing{Namespace: in, Resource: "pods", Fields: "status.phase!=Succeeded,status.phase!=Failed"}, count)
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if where.Nowhere {
		for _, d := range bySecret {
			d.Pods = nil
		}
	}
	f.looked("pods", where)
	return nil
}

func (f *Report) countPod(pod *corev1.Pod, bySecret map[types.NamespacedName]*Delivery) {
	ours := false
	for _, name := range tokensecret.Mounted(pod) {
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
	if ours && WaitsForToken(pod) {
		f.WaitingCount++
		if len(f.Waiting) < maxPodNames {
			f.Waiting = append(f.Waiting, pod.Namespace+"/"+pod.Name)
		}
	}
}

// findWarnings keeps the newest Warning on each Secret, on the service account that needs it, and on each identity.
func (f *Report) findWarnings(ctx context.Context, c cluster.Both, home string, identities map[types.NamespacedName]*Identity, secrets map[types.NamespacedName]*Delivery, needs map[types.NamespacedName][]accountDelivery) error {
	keep := func(event *corev1.Event) {
		about := types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
		if d := secrets[about]; d != nil && event.InvolvedObject.Kind == "Secret" {
			d.LastFailure = Newer(d.LastFailure, event)
		}
		if event.InvolvedObject.Kind == "ServiceAccount" {
			for _, need := range needs[about] {
				if FailsIdentity(event, need.identity, need.delivery.Secret, len(needs[about]) == 1) {
					need.delivery.LastFailure = Newer(need.delivery.LastFailure, event)
				}
			}
		}
		if identity := identities[about]; identity != nil && event.InvolvedObject.Kind == "WorkloadIdentity" {
			identity.LastFailure = Newer(identity.LastFailure, event)
		}
	}
	kinds := map[string]*cluster.API{"Secret": c.Workload, "WorkloadIdentity": c.Identity}
	if len(needs) > 0 {
		kinds["ServiceAccount"] = c.Workload
	}
	for kind, from := range kinds {
		where, err := cluster.Widest("Events", home, func(in string) error {
			return cluster.Each(ctx, from, cluster.Listing{Namespace: in, Resource: "events", Fields: "type=Warning,involvedObject.kind=" + kind}, keep)
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("list Events: %w", err)
		}
		f.looked("Events", where)
	}
	return nil
}

func (f *Report) sort() {
	order := func(a, b *Identity) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	}
	slices.SortFunc(f.strays, order)
	f.Identities = append(f.Identities, f.strays...)
	for _, i := range f.Identities {
		slices.SortFunc(i.Deliveries, func(a, b *Delivery) int { return strings.Compare(a.Namespace+"/"+a.Secret, b.Namespace+"/"+b.Secret) })
	}
	slices.Sort(f.Notes)
}
