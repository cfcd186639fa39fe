package renew

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// renewal is the request for new tokens of one object of a ContextKind.
type renewal struct {
	*renew
	identity *cluster.API
	kind     cluster.Kind
	at       cluster.Place
	object   metav1.ObjectMeta
	// before is the request that there was, and used are those that Secrets were renewed by.
	before string
	used   []string
	// written is when the request was, at the latest.
	written time.Time
}

// renewObject renews what is delivered for an object. Agents have no right to it: what it requests comes to them with its deliveries, and when its
// annotation was written distinguishes requests.
func (r *renew) renewObject(ctx context.Context, both cluster.Both, kind cluster.Kind, at cluster.Place, result *Result) error {
	var object metav1.PartialObjectMetadata
	if err := both.Identity.Get(ctx, &object, at); err != nil {
		return err
	}
	w := &renewal{renew: r, identity: both.Identity, kind: kind, at: at, object: object.ObjectMeta}
	review, err := w.review(ctx)
	if err != nil {
		return err
	}
	w.before, result.Clusters = review.Renewal, review.Clusters
	var keys []types.NamespacedName
	undelivered := 0
	for _, delivery := range review.Deliveries {
		key := types.NamespacedName{Namespace: delivery.Secret.Namespace, Name: delivery.Secret.Name}
		switch {
		case key.Name == "" || delivery.Problem != "":
			undelivered++
		case delivery.WorkloadIdentity == nil && delivery.Unknown == "": // static credentials: there is no token
		case !slices.Contains(keys, key):
			keys = append(keys, key)
		}
	}
	if undelivered > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("%s can not be delivered now: see credence explain context", wording.Plural(undelivered, "Secret", "Secrets")))
	}
	if len(review.Deliveries) == 0 && len(review.Unknown) == 0 {
		return &command.Failure{
			Line: fmt.Sprintf("error: nothing is delivered for %s, so there is no token to renew", result.Object),
			Hint: "see what it uses, and on which clusters it is: credence explain context", Code: command.ExitRefused,
		}
	}
	read := func() (carried, error) { return readSecrets(ctx, both.Workload, keys, w.own) }
	before, err := read()
	if err := result.unseen(err); err != nil {
		return err
	}
	if err := w.ask(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, result, before, read); err != nil {
		return err
	}
	// One cluster, all of whose Secrets are seen: there is no agent that still has to see the annotation.
	result.Elsewhere = len(review.Clusters) != 1 || len(before) < len(keys)
	if result.done() {
		// The next request, which may not see these Secrets, is another one only if it is of another second.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(w.written.Add(time.Second))):
		}
		return w.identity.Patch(ctx, w.at, annotate(nil), nil, cluster.FieldManager(manager))
	}
	result.Notes = append(result.Notes, fmt.Sprintf("the annotation %s stays on the object, for agents that have not seen it", v1alpha1.AnnotationOperation))
	return nil
}

// own reports whether a Secret was made for the object, and keeps the request that it was renewed by.
func (w *renewal) own(secret *corev1.Secret) bool {
	object, err := tokensecret.ParseContext(secret.Annotations[v1alpha1.AnnotationContextObject])
	if err != nil || object == nil || object.UID != w.object.UID || secret.Annotations[v1alpha1.AnnotationContextDelivery] == "" {
		return false
	}
	if used := secret.Annotations[v1alpha1.AnnotationContextRenewal]; used != "" && !slices.Contains(w.used, used) {
		w.used = append(w.used, used)
	}
	return true
}

func (w *renewal) review(ctx context.Context) (*identityv1alpha1.ContextReviewStatus, error) {
	review, err := explain.ReviewObject(ctx, w.identity, w.kind, w.object)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code == http.StatusUnprocessableEntity {
		return nil, &command.Failure{
			Line: fmt.Sprintf("error: no ContextKind makes %s contexts of tokens, so nothing follows an annotation of them", w.kind.Title()),
			Hint: "renew secret/NAME, serviceaccount/NAME, or with --all --identity NAME what carries the tokens of an identity", Code: command.ExitRefused, Err: err,
		}
	} else if err != nil {
		return nil, err
	}
	return &review.Status, nil
}

// ask writes the annotation so that the API server takes it for another request than all before: it knows requests by the second in which they were
// written.
func (w *renewal) ask(ctx context.Context) error {
	taken := append(slices.Clone(w.used), w.before)
	for {
		if w.before != "" {
			if err := w.identity.Patch(ctx, w.at, annotate(nil), nil, cluster.FieldManager(manager)); err != nil {
				return err
			}
			if _, err := w.until(ctx, func(now string) bool { return now == "" }); err != nil {
				return err
			}
		}
		if err := w.request(ctx, w.identity, w.at); err != nil {
			return err
		}
		w.written = time.Now()
		now, err := w.until(ctx, func(now string) bool { return now != "" })
		if err != nil || !slices.Contains(taken, now) {
			return err
		}
		w.before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// seenSoon is how long the API server may take to see a change of an object.
const seenSoon = 2 * time.Minute

// until waits until the API server has seen a request, or that it is gone.
func (w *renewal) until(ctx context.Context, seen func(string) bool) (string, error) {
	over := time.After(seenSoon)
	for {
		review, err := w.review(ctx)
		if err != nil {
			return "", err
		}
		if seen(review.Renewal) {
			return review.Renewal, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-over:
			return "", &command.Failure{Line: "error: the API server of the identities does not see the annotation of the object", Hint: "try again; the annotation may be on the object", Code: command.ExitOutage}
		case <-time.After(lookAgain):
		}
	}
}
