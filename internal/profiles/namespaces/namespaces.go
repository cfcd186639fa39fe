package namespaces

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/profiles"
)

// fieldManager is the one of all that templates make.
const fieldManager = "credence-namespace-templates"

const (
	// recheck is after how long a namespace is looked at again, in which nothing has changed that is followed; retry is that of one that lacks
	// something.
	recheck, retry = 10 * time.Minute, time.Minute
	// pause is how long deletions and changes are waited for, so that several are one look.
	pause = time.Second
	// apart is how long after a namespace was written it is written again because of a deletion or change: users of the namespace can delete in a loop.
	apart = 30 * time.Second
	// atOnce bounds the namespaces of a template that are written at the same time.
	atOnce = 8
)

// Controller keeps namespaces what their templates have.
type Controller struct {
	Log *slog.Logger
	Now func() time.Time

	client client.Client
	live   client.Reader

	mu   sync.Mutex
	done map[string]map[string]visit // by template and namespace
}

// visit is when a namespace was written for a template, what was known then, what was wrong, and whether something that the template gives was
// deleted or changed since.
type visit struct {
	at      time.Time
	of      string
	problem *accounts.IncompleteNamespace
	changed bool
}

// again is when the namespace is to be written again.
func (v visit) again() time.Time {
	switch {
	case v.changed:
		return v.at.Add(apart)
	case v.problem != nil:
		return v.at.Add(retry)
	}
	return v.at.Add(recheck)
}

// Followed narrows what is followed: of all RoleBindings, those that templates give.
func Followed() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&rbacv1.RoleBinding{}: {Label: labels.SelectorFromSet(labels.Set{bindingLabel: bindingValue})}}
}

// Register adds the controller to a manager.
func (c *Controller) Register(m manager.Manager) error {
	c.client, c.live, c.done = m.GetClient(), m.GetAPIReader(), map[string]map[string]visit{}
	for _, object := range []client.Object{&accounts.NamespaceTemplate{}, profiles.Metadata("Namespace")} {
		if _, err := m.GetCache().GetInformer(context.Background(), object); err != nil {
			return fmt.Errorf("follow %T: %w", object, err)
		}
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return c.all(ctx) })
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	again := func(ctx context.Context, kind string, object client.Object, queue queue) {
		for template, after := range c.changed(ctx, object.GetNamespace(), key{kind, object.GetName()}) {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: template}}, after)
		}
	}
	deletions := func(kind string) handler.Funcs {
		return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) { again(ctx, kind, e.Object, queue) }}
	}
	bindings := deletions("RoleBinding") // also where the label was taken off
	bindings.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, queue queue) {
		if rebound(e.ObjectOld, e.ObjectNew) {
			again(ctx, "RoleBinding", e.ObjectNew, queue)
		}
	}
	return builder.ControllerManagedBy(m).Named("namespace-templates").
		Watches(&accounts.NamespaceTemplate{}, all).
		WatchesMetadata(profiles.Metadata("Namespace"), all).
		WatchesMetadata(profiles.Metadata("ServiceAccount"), deletions("ServiceAccount")).
		Watches(&accounts.ServiceAccountProfile{}, deletions("ServiceAccountProfile")).
		Watches(&rbacv1.RoleBinding{}, bindings).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

// rebound reports whether the subjects of a RoleBinding are others. Its role can't be changed.
func rebound(before, after client.Object) bool {
	old, wasBinding := before.(*rbacv1.RoleBinding)
	binding, isBinding := after.(*rbacv1.RoleBinding)
	return wasBinding && isBinding && !slices.Equal(old.Subjects, binding.Subjects)
}

// all are requests for all templates: a change of one may be one of what others contradict, and what they select is quickly found out.
func (c *Controller) all(ctx context.Context) []reconcile.Request {
	templates, err := c.templates(ctx)
	if err != nil {
		c.Log.ErrorContext(ctx, "templates of namespaces can't be listed", "err", err)
	}
	var requests []reconcile.Request
	for _, template := range templates {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: template.Name}})
	}
	return requests
}

// changed notes that an object of a namespace is gone, or a RoleBinding is another one. It returns the templates that give it and have written there, and after how long each
// writes again.
func (c *Controller) changed(ctx context.Context, namespace string, gone key) map[string]time.Duration {
	templates, err := c.templates(ctx)
	if err != nil {
		c.Log.ErrorContext(ctx, "templates of namespaces can't be listed", "err", err)
	}
	after := map[string]time.Duration{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, template := range templates {
		v, ok := c.done[template.Name][namespace]
		if !ok || !gives(&template.Spec, namespace, gone) {
			continue
		}
		v.changed = true
		c.done[template.Name][namespace] = v
		after[template.Name] = max(pause, v.again().Sub(c.Now()))
	}
	return after
}

// templates are those of the cluster that are not being deleted, the oldest first.
func (c *Controller) templates(ctx context.Context) ([]*accounts.NamespaceTemplate, error) {
	list := &accounts.NamespaceTemplateList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, err
	}
	var templates []*accounts.NamespaceTemplate
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			templates = append(templates, &list.Items[i])
		}
	}
	slices.SortFunc(templates, byAge)
	return templates, nil
}

// Reconcile makes the namespaces that a template selects what it has.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	templates, err := c.templates(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	at := slices.IndexFunc(templates, func(t *accounts.NamespaceTemplate) bool { return t.Name == request.Name })
	if at < 0 {
		c.forget(request.Name, nil)
		return reconcile.Result{}, nil // deleted: all stays as it is
	}
	template := templates[at]
	selector, err := selectorOf(template)
	if err != nil {
		return reconcile.Result{}, c.writeStatus(ctx, template, report{invalid: err.Error()})
	}
	namespaces, err := c.selected(ctx, selector)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list the namespaces of template %s: %w", template.Name, err)
	}
	found := report{namespaces: len(namespaces)}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	after := recheck
	for _, namespace := range namespaces {
		group.Go(func() error {
			problem := c.visit(ctx, template, templates[:at], namespace)
			mu.Lock()
			defer mu.Unlock()
			if problem != nil {
				found.incomplete, after = append(found.incomplete, *problem), retry
			}
			return nil
		})
	}
	_ = group.Wait() // problems are values
	c.forget(template.Name, namespaces)
	after = min(after, c.untilChanged(template.Name))
	return reconcile.Result{RequeueAfter: after}, c.writeStatus(ctx, template, found)
}

// selected are the namespaces that a selector finds: not those that terminate, and not those of Kubernetes and of Credence itself.
func (c *Controller) selected(ctx context.Context, selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(profiles.Metadata("Namespace").GroupVersionKind())
	if err := c.client.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var namespaces []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if n := &list.Items[i]; n.DeletionTimestamp.IsZero() && !rights.Reserved(n.Name) && n.Name != rights.NodeNamespace {
			namespaces = append(namespaces, n)
		}
	}
	return namespaces, nil
}

// selectorOf never selects all namespaces.
func selectorOf(template *accounts.NamespaceTemplate) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&template.Spec.NamespaceSelector)
	if err == nil && selector.Empty() {
		err = fmt.Errorf("it selects all namespaces: name a label")
	}
	if err != nil {
		return nil, fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	return selector, nil
}

// visit writes what a namespace lacks, unless that was done a short time ago and nothing has changed. It returns what is still missing; nil: nothing.
func (c *Controller) visit(ctx context.Context, template *accounts.NamespaceTemplate, before []*accounts.NamespaceTemplate, namespace *metav1.PartialObjectMetadata) *accounts.IncompleteNamespace {
	var older []*accounts.NamespaceTemplate
	known := fmt.Sprintf("%s %d %s %v", template.UID, template.Generation, namespace.UID, namespace.Labels)
	for _, other := range before {
		if selector, err := selectorOf(other); err == nil && selector.Matches(labels.Set(namespace.Labels)) {
			older = append(older, other)
			known += fmt.Sprintf(" %s %d", other.UID, other.Generation)
		}
	}
	if last, due := c.begin(template.Name, namespace.Name, known); !due {
		return last
	}
	problem := c.write(ctx, template, older, namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.done[template.Name][namespace.Name] // something may have changed meanwhile
	v.problem = problem
	c.done[template.Name][namespace.Name] = v
	return problem
}

// begin notes that a namespace is written for a template, if that is due. Otherwise it returns what was wrong the last time.
func (c *Controller) begin(template, namespace, known string) (problem *accounts.IncompleteNamespace, due bool) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.done[template][namespace]; last.of == known && now.Before(last.again()) {
		return last.problem, false
	}
	if c.done[template] == nil {
		c.done[template] = map[string]visit{}
	}
	c.done[template][namespace] = visit{at: now, of: known}
	return nil, true
}

// untilChanged is how long it is until a template writes again what was deleted or changed, or long after that where nothing was: the queue keeps only the
// earliest of several requests for a template.
func (c *Controller) untilChanged(template string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := recheck
	for _, v := range c.done[template] {
		if v.changed {
			until = min(until, max(pause, v.again().Sub(c.Now())))
		}
	}
	return until
}

// forget forgets all namespaces of a template but these.
func (c *Controller) forget(template string, but []*metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]visit{}
	for _, namespace := range but {
		if v, ok := c.done[template][namespace.Name]; ok {
			kept[namespace.Name] = v
		}
	}
	if c.done[template] = kept; len(kept) == 0 {
		delete(c.done, template)
	}
}
