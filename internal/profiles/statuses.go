package profiles

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// statusManager is the field manager of what Statuses writes.
const statusManager = "credence-profiles"

// templateIndex is that of cached profiles by the name of their SecurityContextTemplate.
const templateIndex = "template"

// Statuses is the controller that writes what became of each profile into its status, and Events when that changes.
type Statuses struct {
	Events record.EventRecorder
	Log    *slog.Logger

	client client.Client
}

// Register implements Controller.
func (s *Statuses) Register(m manager.Manager) error {
	s.client = m.GetClient()
	// Replicas that do not lead have seen everything, too.
	for _, object := range []client.Object{&accounts.ServiceAccountProfile{}, &accounts.SecurityContextTemplate{}, newAccount()} {
		if _, err := m.GetCache().GetInformer(context.Background(), object); err != nil {
			return fmt.Errorf("follow %T: %w", object, err)
		}
	}
	if err := m.GetFieldIndexer().IndexField(context.Background(), &accounts.ServiceAccountProfile{}, templateIndex, func(object client.Object) []string {
		if name := templateOf(object.(*accounts.ServiceAccountProfile)); name != "" {
			return []string{name}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index profiles by template: %w", err)
	}
	return builder.ControllerManagedBy(m).Named("statuses").
		For(&accounts.ServiceAccountProfile{}).
		WatchesMetadata(newAccount(), handler.EnqueueRequestsFromMapFunc(func(_ context.Context, account client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(account)}}
		})).
		Watches(&accounts.SecurityContextTemplate{}, handler.EnqueueRequestsFromMapFunc(s.ofTemplate)).
		Complete(s)
}

// ofTemplate returns the profiles that name a template.
func (s *Statuses) ofTemplate(ctx context.Context, template client.Object) []reconcile.Request {
	profiles := &accounts.ServiceAccountProfileList{}
	if err := s.client.List(ctx, profiles, client.MatchingFields{templateIndex: template.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		s.Log.ErrorContext(ctx, "the profiles of a template can't be listed", "template", template.GetName(), "err", err)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(profiles.Items))
	for i := range profiles.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&profiles.Items[i])})
	}
	return requests
}

// Reconcile looks at one profile.
func (s *Statuses) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile := &accounts.ServiceAccountProfile{}
	if err := s.client.Get(ctx, request.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, err := s.facts(ctx, profile)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, s.write(ctx, profile, decide(known))
}

// facts gathers what the status of a profile is decided from.
func (s *Statuses) facts(ctx context.Context, profile *accounts.ServiceAccountProfile) (facts, error) {
	known := facts{profile: profile}
	switch err := s.client.Get(ctx, client.ObjectKeyFromObject(profile), newAccount()); {
	case err == nil:
		known.account = true
	case !apierrors.IsNotFound(err):
		return facts{}, err
	}
	if name := templateOf(profile); name != "" {
		template := &accounts.SecurityContextTemplate{}
		switch err := s.client.Get(ctx, types.NamespacedName{Name: name}, template); {
		case err == nil:
			known.template = template
		case !apierrors.IsNotFound(err):
			return facts{}, err
		}
	}
	return known, nil
}

// write makes the status of a profile what was decided, unless it is so already.
func (s *Statuses) write(ctx context.Context, profile *accounts.ServiceAccountProfile, decided outcome) error {
	before, after := profile.Status.Conditions, profile.DeepCopy().Status.Conditions
	own := make([]metav1.Condition, 0, len(decided.conditions))
	for _, condition := range decided.conditions {
		condition.ObservedGeneration = profile.Generation
		meta.SetStatusCondition(&after, condition)
		own = append(own, *meta.FindStatusCondition(after, condition.Type))
	}
	if profile.Status.ObservedGeneration == profile.Generation && equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if err := ApplyStatus(ctx, s.client, profile, statusManager, accounts.ServiceAccountProfileStatus{ObservedGeneration: profile.Generation, Conditions: own}); err != nil {
		return err
	}
	for _, condition := range own {
		s.event(profile, meta.FindStatusCondition(before, condition.Type), condition)
	}
	return nil
}

// event writes an Event where a condition has another status or reason than before. A condition that is true from the beginning is not
// reported.
func (s *Statuses) event(profile *accounts.ServiceAccountProfile, before *metav1.Condition, after metav1.Condition) {
	good := after.Status == metav1.ConditionTrue
	if before == nil && good || before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if good {
		kind = corev1.EventTypeNormal
	}
	s.Events.Event(profile, kind, after.Reason, after.Message)
}
