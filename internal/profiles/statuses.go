package profiles

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/profile/username"
)

// statusManager is the field manager of what Statuses writes.
const statusManager = "credence-profiles"

// templateIndex is that of cached profiles by the name of their SecurityContextTemplate.
const templateIndex = "template"

// Statuses is the controller that writes what became of each profile into its status, and Events when that changes.
type Statuses struct {
	// Usernames is the template of the cluster.
	Usernames username.Template
	Events    record.EventRecorder
	Metrics   prometheus.Registerer
	Log       *slog.Logger

	client client.Client
	// given are usernames that were written, by their keys, until the cache shows them. One worker alone gives names.
	given map[string]*accounts.ServiceAccountProfile
}

// Register implements Controller.
func (s *Statuses) Register(m manager.Manager) error {
	if err := s.Metrics.Register(collector{m.GetClient()}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	s.client, s.given = m.GetClient(), map[string]*accounts.ServiceAccountProfile{}
	// Replicas that do not lead have seen everything, too.
	for _, object := range []client.Object{&accounts.ServiceAccountProfile{}, &accounts.SecurityContextTemplate{}, Metadata("ServiceAccount")} {
		if _, err := m.GetCache().GetInformer(context.Background(), object); err != nil {
			return fmt.Errorf("follow %T: %w", object, err)
		}
	}
	for index, values := range map[string]func(*accounts.ServiceAccountProfile) []string{
		templateIndex: func(p *accounts.ServiceAccountProfile) []string {
			return slices.DeleteFunc([]string{profile.TemplateOf(p)}, func(name string) bool { return name == "" })
		},
		usernameIndex: s.usernames,
	} {
		if err := m.GetFieldIndexer().IndexField(context.Background(), &accounts.ServiceAccountProfile{}, index, func(object client.Object) []string {
			return values(object.(*accounts.ServiceAccountProfile))
		}); err != nil {
			return fmt.Errorf("index profiles by %s: %w", index, err)
		}
	}
	return builder.ControllerManagedBy(m).Named("statuses").
		For(&accounts.ServiceAccountProfile{}).
		Watches(&accounts.ServiceAccountProfile{}, s.rivals()).
		WatchesMetadata(Metadata("ServiceAccount"), handler.EnqueueRequestsFromMapFunc(func(_ context.Context, account client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(account)}}
		})).
		Watches(&accounts.SecurityContextTemplate{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, template client.Object) []reconcile.Request {
			return s.requests(ctx, templateIndex, template.GetName())
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(s)
}

// requests are for the profiles that an index has under a value.
func (s *Statuses) requests(ctx context.Context, index, value string) []reconcile.Request {
	found, err := s.list(ctx, index, value)
	if err != nil {
		s.Log.ErrorContext(ctx, "profiles can't be listed", "index", index, "value", value, "err", err)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(found))
	for i := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
	}
	return requests
}

// list returns the profiles that an index has under a value, not to be changed.
func (s *Statuses) list(ctx context.Context, index, value string) ([]accounts.ServiceAccountProfile, error) {
	list := &accounts.ServiceAccountProfileList{}
	err := s.client.List(ctx, list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// Reconcile looks at one profile.
func (s *Statuses) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	own := &accounts.ServiceAccountProfile{}
	if err := s.client.Get(ctx, request.NamespacedName, own); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, err := s.facts(ctx, own)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, s.write(ctx, own, decide(known))
}

// facts gathers what the status of a profile is decided from.
func (s *Statuses) facts(ctx context.Context, own *accounts.ServiceAccountProfile) (facts, error) {
	known := facts{profile: own}
	var err error
	if known.username, err = s.decideUsername(ctx, own); err != nil {
		return facts{}, err
	}
	account := Metadata("ServiceAccount")
	switch err := s.client.Get(ctx, client.ObjectKeyFromObject(own), account); {
	case err == nil:
		known.account = account
	case !apierrors.IsNotFound(err):
		return facts{}, err
	}
	if name := profile.TemplateOf(own); name != "" {
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
func (s *Statuses) write(ctx context.Context, own *accounts.ServiceAccountProfile, decided outcome) error {
	before, after := own.Status.Conditions, own.DeepCopy().Status.Conditions
	conditions := make([]metav1.Condition, 0, len(decided.conditions))
	for _, condition := range decided.conditions {
		condition.ObservedGeneration = own.Generation
		meta.SetStatusCondition(&after, condition)
		conditions = append(conditions, *meta.FindStatusCondition(after, condition.Type))
	}
	if own.Status.ObservedGeneration == own.Generation && own.Status.Username == decided.username && equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	status := accounts.ServiceAccountProfileStatus{ObservedGeneration: own.Generation, Username: decided.username, Conditions: conditions}
	s.give(own, decided.username)
	if err := ApplyStatus(ctx, s.client, own, statusManager, status); err != nil {
		return err
	}
	for _, condition := range conditions {
		good := condition.Status == metav1.ConditionTrue && condition.Reason != username.Kept
		Report(s.Events, own, meta.FindStatusCondition(before, condition.Type), condition, good)
	}
	return nil
}
