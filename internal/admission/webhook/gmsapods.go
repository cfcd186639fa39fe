package webhook

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
)

// expand fills in the contents of the GMSACredentialSpecs that a pod names.
func (a *managedAccounts) expand(ctx context.Context, r *request[accountObject]) (answer, error) {
	added, concerns, refusal := broughtAlong(r)
	if refusal != nil || !concerns {
		return refused(refusal), nil
	}
	pod := r.Object.pod()
	references := gmsa.Of(gmsa.References(pod, a.Annotations), added)
	names, denial := gmsa.Names(gmsa.Unresolved(references))
	if denial != nil {
		return refused(denial), nil
	}
	q := gmsa.Request{Namespace: r.Namespace, ServiceAccount: r.Object.Spec.ServiceAccountName, References: references}
	if err := a.find(ctx, &q, names); err != nil {
		return answer{}, err
	}
	result := gmsa.Expand(q)
	if result.Denial == nil && added == nil && a.Hostname != nil {
		result.Patch = append(result.Patch, gmsa.Hostname(pod, references, a.Hostname())...)
	}
	return answerOf(result), nil
}

// authorize admits a pod with its group managed service accounts, or refuses it.
func (a *managedAccounts) authorize(ctx context.Context, r *request[accountObject]) (answer, error) {
	if denial, decided := a.annotationsOnly(r); decided {
		if denial != nil || !a.userAnswers(r.UserInfo.Name) || !anotherProgram(r) {
			return refused(denial), nil
		}
		return a.decide(ctx, r.UserInfo, gmsa.Request{Namespace: r.Namespace, User: r.UserInfo.Name, UserReferences: gmsa.References(r.Object.pod(), a.Annotations)})
	}
	added, concerns, refusal := broughtAlong(r)
	if refusal != nil || !concerns {
		return refused(refusal), nil
	}
	all := gmsa.References(r.Object.pod(), a.Annotations)
	q := gmsa.Request{Namespace: r.Namespace, ServiceAccount: r.Object.Spec.ServiceAccountName, References: gmsa.Of(all, added)}
	if a.userAnswers(r.UserInfo.Name) {
		q.User, q.UserReferences = r.UserInfo.Name, gmsa.Run(all, added)
	}
	return a.decide(ctx, r.UserInfo, q)
}

// decide finds out what a Request needs, and decides about it.
func (a *managedAccounts) decide(ctx context.Context, user authority.Subject, q gmsa.Request) (answer, error) {
	names, denial := gmsa.Names(q.References)
	if denial != nil {
		return refused(denial), nil
	}
	userNames, denial := gmsa.Names(q.UserReferences)
	if denial != nil {
		return refused(denial), nil
	}
	if err := a.find(ctx, &q, names); err != nil {
		return answer{}, err
	}
	var err error
	if q.UserUses, err = a.usable(ctx, user, q.Namespace, userNames); err != nil {
		return answer{}, err
	}
	if err := a.afresh(ctx, q); err != nil {
		return answer{}, err
	}
	decision := answerOf(gmsa.Authorize(q))
	if len(names) > 0 {
		decision.audit = map[string]string{"credential-specs": strings.Join(names, ",")}
	}
	return decision, nil
}

// find completes a Request by what its service account may use of names, and by what there is.
func (a *managedAccounts) find(ctx context.Context, q *gmsa.Request, names []string) (err error) {
	if q.ServiceAccount != "" {
		if q.Uses, err = a.usable(ctx, authority.ServiceAccount(q.Namespace, q.ServiceAccount, ""), q.Namespace, names); err != nil {
			return err
		}
	}
	q.Specs, err = a.known(ctx, names)
	return err
}

// broughtAlong returns which part of a pod a review is about: all of it (nil), ephemeral containers, or nothing that concerns
// group managed service accounts.
func broughtAlong(r *request[accountObject]) (added []string, concerns bool, refusal *decision.Denial) {
	if !isPod(r) {
		return nil, false, decision.BadRequest("this webhook is for pods, not for " + r.about())
	}
	switch {
	case r.Object == nil: // of DELETE, which needs no check
	case r.Operation == admissionv1.Create && r.SubResource == "":
		return nil, true, nil
	case r.Operation == admissionv1.Update && r.SubResource == "ephemeralcontainers" && r.OldObject != nil:
		added = r.Object.added(r.OldObject)
		return added, len(added) > 0, nil
	case r.Operation == admissionv1.Update && r.OldObject != nil: // the API server itself lets none of these fields be changed
		return nil, false, nil
	}
	return nil, false, decision.BadRequest("this webhook is for CREATE and UPDATE of pods, not for " + string(r.Operation) + " of " + r.about())
}

func isPod[T any](r *request[T]) bool {
	return r.Resource.Group == "" && r.Resource.Resource == "pods"
}

// anotherProgram reports whether an update of a pod changes an image.
func anotherProgram(r *request[accountObject]) bool {
	if r.OldObject == nil || r.SubResource != "" {
		return false
	}
	return !slices.Equal(r.Object.images(), r.OldObject.images())
}

// annotationsOnly decides about requests that can change an account only by annotations: updates of pods, and
// bindings, whose annotations become those of the pod.
func (a *managedAccounts) annotationsOnly(r *request[accountObject]) (denial *decision.Denial, decided bool) {
	binding := r.Resource.Group == "" && (r.Resource.Resource == "bindings" || isPod(r) && r.SubResource == "binding")
	switch {
	case binding && r.Operation == admissionv1.Create && r.Object != nil:
		if a.Annotations {
			denial = gmsa.Unchanged(nil, r.Object.Metadata.Annotations)
		}
		return denial, true
	case isPod(r) && r.Operation == admissionv1.Update && r.SubResource != "ephemeralcontainers" && r.Object != nil && r.OldObject != nil:
		if a.Annotations {
			denial = gmsa.Unchanged(r.OldObject.Metadata.Annotations, r.Object.Metadata.Annotations)
		}
		return denial, true
	}
	return nil, false
}
