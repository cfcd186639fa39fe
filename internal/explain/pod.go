package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/tokensecret"
)

// The verdicts on a pod.
const (
	Admitted   = "admitted"
	Refused    = "refused"
	Unaffected = "unaffected" // its service account gives it no identity
	Unserved   = "unserved"   // its service account lists some, but it gets none: its namespace has no label, or no webhook saw it
	Blocked    = "blocked"    // it is admitted, and does not start: a token can't come
	Waits      = "waits"      // it was admitted, waits for its tokens, and no agent has reported about it
	Unknown    = "unknown"    // what decides could not be read
)

// The answers to whether a service account may use an identity.
const (
	useAllowed = "allowed"
	useDenied  = "denied"
	useUnknown = "unknown"
)

// Pod is what becomes of a pod.
type Pod struct {
	Kind           string `json:"kind"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
	// NamespaceLabelled reports whether the namespace has the label that lets service accounts give identities; absent if that
	// is not known.
	NamespaceLabelled *bool  `json:"namespaceLabelled,omitempty"`
	Verdict           string `json:"verdict"`
	// Code is that of the refusal; Reason is why the verdict is not admitted.
	Code       int32       `json:"code,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Identities []*Identity `json:"identities"`
	// Profile is what the profile of the service account does to the pod; absent if the account has none, or its namespace does not apply it.
	Profile *Profile `json:"profile,omitempty"`
	// GMSA is what becomes of the Active Directory accounts that the pod names; absent if it names none.
	GMSA     *Accounts `json:"gmsa,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	// Drift is whether the same pod would be made today; absent if there is no such pod yet.
	Drift *drift.Finding `json:"drift,omitempty"`
	// Delivery is how the pod has its tokens: secret or csi; absent if it has none.
	Delivery string `json:"delivery,omitempty"`
	// Gated is true if the pod is held back until its tokens exist.
	Gated bool `json:"gated"`
	// DryRun is true if the API server has tried to create such a pod, without keeping it.
	DryRun bool `json:"dryRun"`
	// Waiting is the condition TokenReady of a pod that waits behind its gate; absent if the agent has not written it.
	Waiting *inventory.Warning `json:"waiting,omitempty"`
	// LastFailure is the newest Warning on a pod that exists.
	LastFailure *inventory.Warning `json:"lastFailure,omitempty"`
	// Notes are facts that could not be found out, or that the verdict does not cover.
	Notes []string `json:"notes,omitempty"`

	delivery string // the label that chooses how tokens come to pods, or empty

	profiles bool // the namespace has the label that applies profiles

	// NamespaceLabel words what NamespaceLabelled reports.
	NamespaceLabel string `json:"-"`

	account *corev1.ServiceAccount // nil: not read
	opening sync.Mutex             // of open: facts are gathered at once
	open    []string               // what decides and could not be read
	filled  *corev1.Pod            // the pod with what its profile fills in; nil without a profile
	preview *corev1.Pod            // the pod after admission
}

// Profile is what a ServiceAccountProfile does to a pod.
type Profile struct {
	Name string `json:"name"`
	// Mode is that of its security context, or empty.
	Mode     string `json:"mode,omitempty"`
	Template string `json:"template,omitempty"`
	// FilledIn are the fields that it fills in.
	FilledIn []profile.Field `json:"filledIn"`
	// ListsIdentities reports whether it lists the identities, in place of the annotation.
	ListsIdentities bool `json:"listsIdentities,omitempty"`
}

// Identity is what a pod gets of an identity.
type Identity struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	// Use is allowed, denied, or unknown if it could not be reviewed.
	Use string `json:"use"`
	// Reason is why the pod would be refused for this identity alone.
	Reason string `json:"reason,omitempty"`
	// Secret is where the token comes from, and State what is known of it. It is empty if the token comes in a volume that is not stored.
	Secret string `json:"secret"`
	State  string `json:"state,omitempty"`
	// LastFailure is the newest Warning on the service account, the Secret or the identity that is about this delivery.
	LastFailure *inventory.Warning `json:"lastFailure,omitempty"`
	// Missing is true if the pod exists and does not have it.
	Missing    bool        `json:"missing,omitempty"`
	Containers []Container `json:"containers,omitempty"`
}

// Container is what one container gets of an identity.
type Container struct {
	Name      string          `json:"name"`
	Files     []string        `json:"files"`
	Variables []corev1.EnvVar `json:"variables,omitempty"`
	// Kept are variables that the container sets itself.
	Kept []string `json:"kept,omitempty"`
}

const accountsAPI = "/apis/" + accounts.GroupName + "/v1alpha1"

// Identities finds out what concerns a pod, lets the rules of the webhook decide, and tries it out. An error is a fact that
// could not be read, although the user may.
func Identities(ctx context.Context, both cluster.Both, subject Subject, now time.Time) (*Pod, error) {
	x := &Pod{
		Kind: subject.kind, Namespace: subject.namespace, Name: subject.name,
		ServiceAccount: subject.pod.Spec.ServiceAccountName, Identities: []*Identity{}, Warnings: subject.faults,
	}
	x.noteKeys("pods", subject.pod)
	request := pods.Request{Namespace: subject.namespace, Pod: subject.pod, Adapters: targets.For}
	if err := x.readNamespace(ctx, both.Workload); err != nil {
		return nil, err
	}
	request.NoIdentities = x.NamespaceLabelled != nil && !*x.NamespaceLabelled && x.profiles
	request.Delivery = cmp.Or(x.delivery, pods.DeliveryOf(subject.pod))
	uses := map[string]string{}
	denial, err := x.sources(both, uses).Gather(ctx, &request)
	if err != nil {
		return nil, err
	}
	if subject.exists {
		if err := x.again(request, denial); err != nil {
			return nil, err
		}
	}
	for _, known := range request.Account.Identities {
		x.Identities = append(x.Identities, &Identity{
			Name: known.Name, Type: known.Type, Use: cmp.Or(uses[known.Name], useUnknown), Secret: tokensecret.NameFor(x.ServiceAccount, known.Name),
		})
	}
	if x.NamespaceLabelled != nil && !*x.NamespaceLabelled && !x.profiles {
		x.outside(request, denial)
		return x, nil
	}
	if subject.exists {
		request.Pod = pods.Requested(request)
	}
	x.explainProfile(request)
	result := pods.Result{Denial: denial}
	if denial == nil {
		result = pods.Decide(request)
	}
	x.Warnings = append(x.Warnings, result.Warnings...)
	if err := x.decide(request, result); err != nil {
		return nil, err
	}
	if x.Verdict != Refused || len(x.open) > 0 {
		if err := x.tryOut(ctx, both.Workload, subject, request.Pod); err != nil {
			return nil, err
		}
	}
	x.Gated = x.preview != nil && inventory.WaitsForToken(x.preview)
	if subject.exists {
		x.Gated = inventory.WaitsForToken(subject.pod)
	}
	x.delivered(request, subject)
	for i, identity := range request.Account.Identities {
		if err := x.detail(x.Identities[i], request, identity); err != nil {
			return nil, err
		}
		x.Identities[i].Missing = subject.exists && !pods.Carries(subject.pod, x.ServiceAccount, identity.Name)
	}
	x.settle()
	if err := x.start(ctx, both, subject, now); err != nil {
		return nil, err
	}
	x.unseen(subject, now)
	if x.account != nil && subject.exists && subject.pod.Status.Phase != corev1.PodSucceeded && subject.pod.Status.Phase != corev1.PodFailed && len(x.Identities) > 0 && MadeLately(x.account, now) && Outlived(x.account, subject.pod) {
		x.Warnings = append(x.Warnings, fmt.Sprintf("service account %s was deleted and created again at %s, after the pod: tokens of the deleted account are refused. Delete the pod, and its workload makes another one",
			x.ServiceAccount, x.account.CreationTimestamp.UTC().Format(time.RFC3339)))
	}
	return x, nil
}

// delivered finds out how the pod has its tokens.
func (x *Pod) delivered(request pods.Request, subject Subject) {
	x.Delivery = cmp.Or(x.delivery, v1alpha1.DeliverySecret)
	if x.preview != nil {
		x.Delivery = pods.DeliveryOf(x.preview)
	}
	if subject.exists {
		x.Delivery = pods.DeliveryOf(subject.pod)
	}
	if len(request.Account.Identities) == 0 {
		x.Delivery = ""
	}
	if x.Delivery != v1alpha1.DeliveryCSI {
		return
	}
	for _, in := range x.Identities {
		in.Secret = ""
	}
}

// again decides again about a pod that exists.
func (x *Pod) again(request pods.Request, denial *pods.Denial) error {
	if len(x.open) > 0 {
		x.Drift = &drift.Finding{State: drift.Unknown, Reason: x.open[0]}
		return nil
	}
	finding, err := drift.Identities(drift.Pod{Request: request, Denial: denial, Enabled: *x.NamespaceLabelled || x.profiles})
	x.Drift = &finding
	return err
}

// outside is the verdict on a pod of a namespace without the label, which the webhook never sees.
func (x *Pod) outside(request pods.Request, denial *pods.Denial) {
	x.Verdict = Unaffected
	if request.Profile.Exists {
		x.Notes = append(x.Notes, fmt.Sprintf("%s has no effect, as the namespace has no label %s=%s, which a cluster admin sets with: kubectl label namespace %s %s=%s",
			request.Profile, accounts.LabelNamespaceProfiles, accounts.NamespaceEnabled, x.Namespace, accounts.LabelNamespaceProfiles, accounts.NamespaceEnabled))
	}
	if len(request.Account.Identities) > 0 || denial != nil {
		x.Verdict = Unserved
		x.Reason = fmt.Sprintf("namespace %s %s: its pods get no identity, and the annotation of the service account has no effect. A cluster admin sets the namespace up with: credence enable %s",
			x.Namespace, x.NamespaceLabel, x.Namespace)
	}
}

// explainProfile lists what the profile fills in.
func (x *Pod) explainProfile(request pods.Request) {
	p := request.Profile
	if !p.Exists {
		return
	}
	filled := pods.Fill(request)
	x.filled = filled.Pod
	x.Profile = &Profile{Name: p.Name, Template: p.Template, FilledIn: append([]profile.Field{}, filled.Fields...), ListsIdentities: p.Spec.WorkloadIdentities != nil}
	if p.Spec.SecurityContext != nil {
		x.Profile.Mode = string(cmp.Or(p.Spec.SecurityContext.Mode, accounts.ModeDefault))
	}
}

func (x *Pod) decide(request pods.Request, result pods.Result) (err error) {
	switch {
	case result.Denial != nil:
		x.Verdict, x.Code, x.Reason = Refused, result.Denial.Code, result.Denial.Message
		return nil
	case len(request.Account.Identities) == 0 && x.Profile == nil:
		x.Verdict = Unaffected
		return nil
	}
	x.Verdict = Admitted
	x.preview, err = decision.Applied(request.Pod, result.Patch)
	return err
}

// settle makes what was left open a verdict, unless the API server has given one.
func (x *Pod) settle() {
	if len(x.open) == 0 || x.Verdict == Unaffected {
		return
	}
	x.Notes = append(x.open, x.Notes...)
	if x.DryRun {
		return
	}
	x.Verdict, x.Code, x.Reason = Unknown, 0, x.open[0]
	x.Notes = x.Notes[1:]
}

func (x *Pod) readNamespace(ctx context.Context, workload *cluster.API) error {
	var namespace corev1.Namespace
	err := workload.Get(ctx, &namespace, cluster.Place{Resource: "namespaces", Name: x.Namespace})
	switch {
	case apierrors.IsForbidden(err):
		x.leaveOpen(fmt.Sprintf("you may not read namespace %s: whether it has the label %s=%s is not known", x.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled))
		return nil
	case err != nil:
		return err
	}
	x.noteKeys("namespaces", &namespace)
	x.delivery = namespace.Labels[v1alpha1.LabelNamespaceDelivery]
	x.profiles = namespace.Labels[accounts.LabelNamespaceProfiles] == accounts.NamespaceEnabled
	value, present := namespace.Labels[v1alpha1.LabelNamespaceIdentities]
	labelled := value == v1alpha1.NamespaceEnabled
	x.NamespaceLabelled = &labelled
	switch {
	case labelled:
		x.NamespaceLabel = fmt.Sprintf("has the label %s=%s", v1alpha1.LabelNamespaceIdentities, value)
	case present:
		x.NamespaceLabel = fmt.Sprintf("has the label %s=%s, which has no effect: the one value is %s", v1alpha1.LabelNamespaceIdentities, value, v1alpha1.NamespaceEnabled)
	default:
		x.NamespaceLabel = fmt.Sprintf("has no label %s=%s", v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
	return nil
}

// sources read as a user. Facts that the user may not read are left open, and taken to be in favor of the pod.
func (x *Pod) sources(both cluster.Both, uses map[string]string) facts.Sources {
	return facts.Sources{
		ServiceAccount: func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
			var account corev1.ServiceAccount
			err := both.Workload.Get(ctx, &account, cluster.Place{Namespace: namespace, Resource: "serviceaccounts", Name: name})
			x.noteKeys("serviceaccounts", &account)
			x.account = &account
			return &account, err
		},
		Profile: func(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error) {
			var object accounts.ServiceAccountProfile
			err := both.Workload.Get(ctx, &object, cluster.Place{API: accountsAPI, Namespace: namespace, Resource: "serviceaccountprofiles", Name: name})
			if apierrors.IsForbidden(err) {
				x.leaveOpen(fmt.Sprintf("you may not read ServiceAccountProfile %s/%s: whether it fills in or refuses something is not known", namespace, name))
				return nil, apierrors.NewNotFound(accounts.Resource("serviceaccountprofiles"), name)
			}
			return &object, err
		},
		Template: func(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error) {
			var object accounts.SecurityContextTemplate
			err := both.Workload.Get(ctx, &object, cluster.Place{API: accountsAPI, Resource: "securitycontexttemplates", Name: name})
			if apierrors.IsForbidden(err) {
				x.leaveOpen(fmt.Sprintf("you may not read SecurityContextTemplate %s: what it fills in or refuses is not known", name))
				return &object, nil
			}
			return &object, err
		},
		Identity: both.Identity.Identity,
		Right: func(ctx context.Context, question authority.Question) (authority.Answer, error) {
			answer, err := authority.Ask(ctx, both.Workload, question)
			uses[question.Object.Name] = useDenied
			switch {
			case apierrors.IsForbidden(err):
				x.leaveOpen("you may not create subjectaccessreviews: whether the service account may use its identities is not known")
				uses[question.Object.Name] = useUnknown
				return authority.Answer{Allowed: true}, nil
			case answer.Allowed:
				uses[question.Object.Name] = useAllowed
			}
			return answer, err
		},
		Nodes: func(ctx context.Context, runtimeClass string) (map[string]string, error) {
			var class struct {
				Scheduling struct {
					NodeSelector map[string]string `json:"nodeSelector"`
				} `json:"scheduling"`
			}
			if cluster.CheckName(runtimeClass) != nil {
				return nil, nil // the API server refuses such a pod itself
			}
			err := both.Workload.Get(ctx, &class, cluster.Place{API: "/apis/node.k8s.io/v1", Resource: "runtimeclasses", Name: runtimeClass})
			if apierrors.IsForbidden(err) {
				x.leaveOpen(fmt.Sprintf("you may not read RuntimeClass %s: whether the pod is one of Windows is not known, and what is listed is for Linux", runtimeClass))
				err = nil
			}
			return class.Scheduling.NodeSelector, err
		},
	}
}

// noteKeys notes the labels and annotations of an object that nothing reads.
func (x *Pod) noteKeys(resource string, o metav1.Object) {
	x.opening.Lock()
	defer x.opening.Unlock()
	for _, key := range UnreadKeys(resource, o) {
		x.Notes = append(x.Notes, key+" has no effect, as nothing reads it: see docs/reference/labels-and-annotations.md for the right spelling")
	}
}

// leaveOpen notes what decides and could not be read, once.
func (x *Pod) leaveOpen(question string) {
	x.opening.Lock()
	defer x.opening.Unlock()
	if !slices.Contains(x.open, question) {
		x.open = append(x.open, question)
	}
}

// detail lists what the pod gets of one identity; where it is refused, as if that were its only one: what stands against all of
// them together is the verdict on the pod.
func (x *Pod) detail(in *Identity, request pods.Request, identity pods.Identity) error {
	changed := x.preview
	if changed == nil {
		request.Account.Identities = []pods.Identity{identity}
		alone := pods.Decide(request)
		if alone.Denial != nil {
			in.Reason = alone.Denial.Message
			if in.Use != useDenied {
				return nil
			}
			// The identity's parts are listed all the same.
			identity.Allowed = true
			request.Account.Identities = []pods.Identity{identity}
			if alone = pods.Decide(request); alone.Denial != nil {
				return nil
			}
		}
		var err error
		if changed, err = decision.Applied(request.Pod, alone.Patch); err != nil {
			return err
		}
	}
	in.Containers = containersWith(changed, identity)
	return nil
}
