package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// start finds out whether an admitted pod starts: the kubelet waits for the token of each identity.
func (x *Pod) start(ctx context.Context, both cluster.Both, subject Subject, now time.Time) error {
	if subject.exists {
		x.Waiting = waitingOf(subject.pod)
	}
	if len(x.Identities) == 0 {
		x.wait(useUnknown)
		return nil
	}
	agent := useUnknown
	if may, known, err := AgentMay(ctx, both, x.Namespace); err != nil {
		return err
	} else if known {
		if agent = useDenied; may {
			agent = useAllowed
		}
	}
	if subject.exists {
		var err error
		if x.LastFailure, err = x.newestWarning(ctx, both.Workload, "Pod", subject.namespace, subject.name, anyWarning); err != nil {
			return err
		}
	}
	runs := subject.exists && subject.pod.Status.Phase != "" && subject.pod.Status.Phase != corev1.PodPending
	there := 0
	for _, in := range x.Identities {
		if in.Type == "" {
			continue // there is no such identity
		}
		if in.Secret == "" {
			there++ // the kubelet waits, and writes Events on the pod
			continue
		}
		token, err := x.readSecret(ctx, both.Workload, in, now)
		if err != nil {
			return err
		}
		if err := x.readWarnings(ctx, both, in); err != nil {
			return err
		}
		if x.Verdict == Admitted && !runs && !in.Missing {
			x.judge(in, token, agent)
		}
		if token == tokenThere {
			there++
		}
	}
	if there < len(x.Identities) || x.waitsForAnother() {
		x.wait(agent)
	}
	return nil
}

// tokenState is what is known of the token that a pod waits for.
type tokenState int

const (
	tokenUnread tokenState = iota
	tokenThere
	tokenAwaited // it comes, unless something is in the way
	tokenNever   // the Secret itself is in the way
)

// judge finds what keeps the pod from starting. A warning may be older than the repair of its cause.
func (x *Pod) judge(in *Identity, token tokenState, agent string) {
	why := ""
	switch {
	case token == tokenThere:
	case token == tokenNever:
		why = "Secret " + in.Secret + " " + in.State
	case agent == useDenied:
		why = fmt.Sprintf("the agent may not get tokens of the identities of namespace %s. %s", x.Namespace, LetAgent(x.Namespace))
	case in.LastFailure != nil && !settled(in, agent):
		why = fmt.Sprintf("%s: %s", in.LastFailure.Reason, in.LastFailure.Message)
	}
	if why == "" {
		return
	}
	x.Verdict, x.Reason = Blocked, fmt.Sprintf("identity %s has no token, and the pod waits for it: %s", in.Name, why)
	if token == tokenUnread {
		x.Verdict, x.Reason = Unknown, fmt.Sprintf("the pod would be admitted; whether it starts is not known, as you may not read Secret %s. It may be kept from starting: %s", in.Secret, why)
	}
}

// settled reports whether the reason of a warning is known to be gone.
func settled(in *Identity, agent string) bool {
	switch in.LastFailure.Reason {
	case "UseDenied":
		return in.Use == useAllowed
	case "IdentityMissing", "InvalidAnnotation":
		return true // the identity and the annotation were read
	case "IdentityUnreadable", "TokenRequestRefused":
		return agent == useAllowed && strings.Contains(strings.ToLower(in.LastFailure.Message), "forbidden")
	}
	return false
}

// readSecret finds out how it stands with the Secret that the token comes from.
func (x *Pod) readSecret(ctx context.Context, workload *cluster.API, in *Identity, now time.Time) (tokenState, error) {
	var secret corev1.Secret
	err := workload.Get(ctx, &secret, cluster.Place{Namespace: x.Namespace, Resource: "secrets", Name: in.Secret})
	switch {
	case apierrors.IsNotFound(err):
		in.State = "does not exist yet: the agent makes it, and the pod starts once it does"
		return tokenAwaited, nil
	case apierrors.IsForbidden(err):
		in.State = "you may not read it"
		return tokenUnread, nil
	case err != nil:
		return tokenUnread, err
	case !tokensecret.Labelled(&secret):
		in.State = "is not the agent's: it has no label " + v1alpha1.LabelPurpose + ". Remove or rename it, and the agent makes its own"
		return tokenNever, nil
	}
	_, d := inventory.DeliveryOf(&secret)
	switch {
	case d.Problem != "":
		in.State = d.Problem
	case d.Expires == nil:
		in.State = "has no token yet: the pod starts once it does"
	case !d.Expires.After(now):
		in.State = "has an expired token: " + wording.Moment(d.Expires.UTC(), now)
	default:
		in.State = "has a token, which expires " + wording.Moment(d.Expires.UTC(), now)
	}
	if len(secret.Data[v1alpha1.SecretToken]) == 0 {
		return tokenAwaited, nil
	}
	return tokenThere, nil
}

// readWarnings keeps the newest Warning that is about the delivery of an identity to this account.
func (x *Pod) readWarnings(ctx context.Context, both cluster.Both, in *Identity) error {
	identity := types.NamespacedName{Namespace: x.Namespace, Name: in.Name}
	for _, about := range []struct {
		cluster    *cluster.API
		kind, name string
		concerns   func(*corev1.Event) bool
	}{
		{both.Workload, "ServiceAccount", x.ServiceAccount, func(e *corev1.Event) bool {
			return inventory.FailsIdentity(e, identity, in.Secret, len(x.Identities) == 1)
		}},
		{both.Workload, "Secret", in.Secret, anyWarning},
		{both.Identity, "WorkloadIdentity", in.Name, func(e *corev1.Event) bool {
			on := inventory.SecretOf(e)
			return on == "" || on == x.Namespace+"/"+in.Secret
		}},
	} {
		warning, err := x.newestWarning(ctx, about.cluster, about.kind, x.Namespace, about.name, about.concerns)
		if err != nil {
			return err
		}
		if warning != nil && (in.LastFailure == nil || warning.Time.After(in.LastFailure.Time)) {
			in.LastFailure = warning
		}
	}
	return nil
}

func anyWarning(*corev1.Event) bool { return true }

// newestWarning is the newest Warning on an object that concerns holds for, or nil.
func (x *Pod) newestWarning(ctx context.Context, from *cluster.API, kind, namespace, name string, concerns func(*corev1.Event) bool) (*inventory.Warning, error) {
	var newest *inventory.Warning
	selector := fields.Set{"type": corev1.EventTypeWarning, "involvedObject.kind": kind, "involvedObject.name": name}.String()
	err := cluster.Each(ctx, from, cluster.Listing{Namespace: namespace, Resource: "events", Fields: selector}, func(event *corev1.Event) {
		if concerns(event) {
			newest = inventory.Newer(newest, event)
		}
	})
	if apierrors.IsForbidden(err) {
		if note := "you may not list Events: whether there are warnings is not known"; len(x.Notes) == 0 || x.Notes[len(x.Notes)-1] != note {
			x.Notes = append(x.Notes, note)
		}
		return nil, nil
	}
	return newest, err
}
