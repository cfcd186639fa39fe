package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/tokensecret"
)

// The verdicts on a pod.
const (
	podAdmitted   = "admitted"
	podRefused    = "refused"
	podUnaffected = "unaffected" // its service account gives it no identity
	podUnserved   = "unserved"   // its service account lists some, but it gets none: its namespace has no label, or no webhook saw it
	podBlocked    = "blocked"    // it is admitted, and does not start: a token can't come
	podUnknown    = "unknown"    // what decides could not be read
)

// The answers to whether a service account may use an identity.
const (
	useAllowed = "allowed"
	useDenied  = "denied"
	useUnknown = "unknown"
)

// podExplanation is what becomes of a pod.
type podExplanation struct {
	Kind           string `json:"kind"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
	// NamespaceLabelled reports whether the namespace has the label that lets service accounts give identities; absent if that
	// is not known.
	NamespaceLabelled *bool  `json:"namespaceLabelled,omitempty"`
	Verdict           string `json:"verdict"`
	// Code is that of the refusal; Reason is why the verdict is not admitted.
	Code       int32            `json:"code,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Identities []*identityInPod `json:"identities"`
	// GMSA is what becomes of the Active Directory accounts that the pod names; absent if it names none.
	GMSA     *gmsaExplanation `json:"gmsa,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
	// Gated is true if the pod is held back until its tokens exist.
	Gated bool `json:"gated"`
	// DryRun is true if the API server has tried to create such a pod, without keeping it.
	DryRun bool `json:"dryRun"`
	// Waiting is the condition TokenReady of a pod that waits behind its gate; absent if the agent has not written it.
	Waiting *eventWarning `json:"waiting,omitempty"`
	// LastFailure is the newest Warning on a pod that exists.
	LastFailure *eventWarning `json:"lastFailure,omitempty"`
	// Notes are facts that could not be found out, or that the verdict does not cover.
	Notes []string `json:"notes,omitempty"`

	namespaceLabel string // in words

	open    []string    // what decides and could not be read
	preview *corev1.Pod // the pod after admission
}

// identityInPod is what a pod gets of an identity.
type identityInPod struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	// Use is allowed, denied, or unknown if it could not be reviewed.
	Use string `json:"use"`
	// Reason is why the pod would be refused for this identity alone.
	Reason string `json:"reason,omitempty"`
	// Secret is where the token comes from, and State what is known of it.
	Secret string `json:"secret"`
	State  string `json:"state,omitempty"`
	// LastFailure is the newest Warning on the service account, the Secret or the identity that is about this delivery.
	LastFailure *eventWarning `json:"lastFailure,omitempty"`
	// Missing is true if the pod exists and does not have it.
	Missing    bool             `json:"missing,omitempty"`
	Containers []containerInPod `json:"containers,omitempty"`
}

// containerInPod is what one container gets of an identity.
type containerInPod struct {
	Name      string          `json:"name"`
	Files     []string        `json:"files"`
	Variables []corev1.EnvVar `json:"variables,omitempty"`
	// Kept are variables that the container sets itself.
	Kept []string `json:"kept,omitempty"`
}

// explainPod finds out what concerns a pod, lets the rules of the webhook decide, and tries it out. An error is a fact that
// could not be read, although the user may.
func explainPod(ctx context.Context, both clusters, subject podSubject, now time.Time) (*podExplanation, error) {
	x := &podExplanation{
		Kind: subject.kind, Namespace: subject.namespace, Name: subject.name,
		ServiceAccount: subject.pod.Spec.ServiceAccountName, Identities: []*identityInPod{},
	}
	request := pods.Request{Namespace: subject.namespace, Pod: subject.pod, Adapters: targets.For}
	request.Account.Name = x.ServiceAccount
	if err := x.readNamespace(ctx, both.workload); err != nil {
		return nil, err
	}
	denial, err := x.readAccount(ctx, both, &request)
	if err != nil {
		return nil, err
	}
	if err := x.readRuntimeClass(ctx, both.workload, &request); err != nil {
		return nil, err
	}
	if x.NamespaceLabelled != nil && !*x.NamespaceLabelled {
		x.outside(request, denial)
		return x, nil
	}
	if subject.exists {
		request.Pod = pods.Requested(request)
	}
	result := pods.Result{Denial: denial}
	if denial == nil {
		result = pods.Decide(request)
	}
	x.Warnings = result.Warnings
	if err := x.decide(request, result); err != nil {
		return nil, err
	}
	if x.Verdict != podUnaffected && (x.Verdict != podRefused || len(x.open) > 0) {
		if err := x.tryOut(ctx, both.workload, subject, request.Pod); err != nil {
			return nil, err
		}
	}
	x.Gated = x.preview != nil && waitsForToken(x.preview)
	if subject.exists {
		x.Gated = waitsForToken(subject.pod)
	}
	for i, identity := range request.Account.Identities {
		if err := x.detail(x.Identities[i], request, identity); err != nil {
			return nil, err
		}
		x.Identities[i].Missing = subject.exists && !pods.Carries(subject.pod, x.ServiceAccount, identity.Name)
	}
	x.settle()
	return x, x.start(ctx, both, subject, now)
}

// outside is the verdict on a pod of a namespace without the label, which the webhook never sees.
func (x *podExplanation) outside(request pods.Request, denial *pods.Denial) {
	x.Verdict = podUnaffected
	if len(request.Account.Identities) > 0 || denial != nil {
		x.Verdict = podUnserved
		x.Reason = fmt.Sprintf("namespace %s %s: its pods get no identity, and the annotation of the service account has no effect. A cluster admin sets it with: kubectl label namespace %s --overwrite %s=%s",
			x.Namespace, x.namespaceLabel, x.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
}

func (x *podExplanation) decide(request pods.Request, result pods.Result) (err error) {
	switch {
	case result.Denial != nil:
		x.Verdict, x.Code, x.Reason = podRefused, result.Denial.Code, result.Denial.Message
		return nil
	case len(request.Account.Identities) == 0:
		x.Verdict = podUnaffected
		return nil
	}
	x.Verdict = podAdmitted
	x.preview, err = applied(request.Pod, result.Patch)
	return err
}

// settle makes what was left open a verdict, unless the API server has given one.
func (x *podExplanation) settle() {
	if len(x.open) == 0 || x.Verdict == podUnaffected {
		return
	}
	x.Notes = append(x.open, x.Notes...)
	if x.DryRun {
		return
	}
	x.Verdict, x.Code, x.Reason = podUnknown, 0, x.open[0]
	x.Notes = x.Notes[1:]
}

func (x *podExplanation) readNamespace(ctx context.Context, workload *api) error {
	var namespace corev1.Namespace
	err := workload.core.Get().MaxRetries(0).Resource("namespaces").Name(x.Namespace).Do(ctx).Into(&namespace)
	switch {
	case apierrors.IsForbidden(err):
		x.open = append(x.open, fmt.Sprintf("you may not read namespace %s: whether it has the label %s=%s is not known", x.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled))
		return nil
	case err != nil:
		return err
	}
	value, present := namespace.Labels[v1alpha1.LabelNamespaceIdentities]
	labelled := value == v1alpha1.NamespaceEnabled
	x.NamespaceLabelled = &labelled
	switch {
	case labelled:
		x.namespaceLabel = fmt.Sprintf("has the label %s=%s", v1alpha1.LabelNamespaceIdentities, value)
	case present:
		x.namespaceLabel = fmt.Sprintf("has the label %s=%s, which has no effect: the one value is %s", v1alpha1.LabelNamespaceIdentities, value, v1alpha1.NamespaceEnabled)
	default:
		x.namespaceLabel = fmt.Sprintf("has no label %s=%s", v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
	}
	return nil
}

// readAccount reads the service account and the identities that it lists.
func (x *podExplanation) readAccount(ctx context.Context, both clusters, request *pods.Request) (*pods.Denial, error) {
	if x.ServiceAccount == "" {
		return nil, nil
	}
	var account corev1.ServiceAccount
	err := both.workload.core.Get().MaxRetries(0).Namespace(x.Namespace).Resource("serviceaccounts").Name(x.ServiceAccount).Do(ctx).Into(&account)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	request.Account.Exists = true
	names, denial := pods.Names(&account)
	if denial != nil {
		return denial, nil
	}
	for _, name := range names {
		known, use, err := x.readIdentity(ctx, both, name)
		if err != nil {
			return nil, err
		}
		request.Account.Identities = append(request.Account.Identities, known)
		x.Identities = append(x.Identities, &identityInPod{
			Name: name, Type: known.Type, Use: use, Secret: tokensecret.NameFor(x.ServiceAccount, name),
		})
	}
	return nil, nil
}

func (x *podExplanation) readIdentity(ctx context.Context, both clusters, name string) (known pods.Identity, use string, err error) {
	known = pods.Identity{Name: name}
	wi, err := both.identity.workloadIdentity(ctx, x.Namespace, name)
	if apierrors.IsNotFound(err) {
		return known, useUnknown, nil
	}
	if err != nil {
		return known, "", err
	}
	known.Exists, known.Deleting, known.Type = true, wi.DeletionTimestamp != nil, wi.Spec.TargetSystem.Type
	if wi.Spec.TargetSystem.ProviderConfig != nil {
		known.ProviderConfig = wi.Spec.TargetSystem.ProviderConfig.Raw
	}
	answer, err := authority.Ask(ctx, both.workload, authority.Use(authority.ServiceAccount(x.Namespace, x.ServiceAccount, ""), authority.WorkloadIdentities, x.Namespace, name))
	switch {
	case apierrors.IsForbidden(err):
		if question := "you may not create subjectaccessreviews: whether the service account may use its identities is not known"; !slices.Contains(x.open, question) {
			x.open = append(x.open, question)
		}
		known.Allowed = true
		return known, useUnknown, nil
	case err != nil:
		return known, "", err
	case answer.Allowed:
		known.Allowed = true
		return known, useAllowed, nil
	}
	known.Detail = answer.Detail
	return known, useDenied, nil
}

// Review implements authority.Reviewer.
func (a *api) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.SubjectAccessReview{Spec: spec}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return review.Status, err
	}
	answer, err := rawAnswer(a.core.Post().MaxRetries(0).AbsPath("/apis/authorization.k8s.io/v1/subjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return review.Status, err
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return review.Status, errors.New("the answer to an access review is not JSON")
	}
	return review.Status, nil
}

func (x *podExplanation) readRuntimeClass(ctx context.Context, workload *api, request *pods.Request) error {
	if len(request.Account.Identities) == 0 || !pods.NeedsRuntimeClass(request.Pod) {
		return nil
	}
	var class struct {
		Scheduling struct {
			NodeSelector map[string]string `json:"nodeSelector"`
		} `json:"scheduling"`
	}
	name := *request.Pod.Spec.RuntimeClassName
	if checkName(name) != nil {
		return nil // the API server refuses such a pod itself
	}
	err := workload.raw(ctx, &class, "/apis/node.k8s.io/v1/runtimeclasses/"+name)
	switch {
	case apierrors.IsNotFound(err): // the API server refuses such a pod itself
	case apierrors.IsForbidden(err):
		x.open = append(x.open, fmt.Sprintf("you may not read RuntimeClass %s: whether the pod is one of Windows is not known, and what is listed is for Linux", name))
	case err != nil:
		return err
	}
	request.RuntimeClassNodes = class.Scheduling.NodeSelector
	return nil
}

// detail lists what the pod gets of one identity; where it is refused, as if that were its only one: what stands against all of
// them together is the verdict on the pod.
func (x *podExplanation) detail(in *identityInPod, request pods.Request, identity pods.Identity) error {
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
		if changed, err = applied(request.Pod, alone.Patch); err != nil {
			return err
		}
	}
	in.Containers = containersWith(changed, identity)
	return nil
}
