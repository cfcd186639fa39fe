package namespaces

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// fieldManager is the one of all that templates make.
const fieldManager = "credence-namespace-templates"

const (
	// recheck is after how long a namespace is looked at again, in which nothing has changed that is followed; retry is that of one that lacks
	// something.
	recheck, retry = 10 * time.Minute, time.Minute
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
	done map[string]map[types.UID]visit // by template and namespace
}

// visit is when a namespace is to be written again for a template, what was known the last time, and what was wrong.
type visit struct {
	again   time.Time
	of      string
	problem *accounts.IncompleteNamespace
}

// Register adds the controller to a manager.
func (c *Controller) Register(m manager.Manager) error {
	c.client, c.live, c.done = m.GetClient(), m.GetAPIReader(), map[string]map[types.UID]visit{}
	for _, object := range []client.Object{&accounts.NamespaceTemplate{}, newNamespace()} {
		if _, err := m.GetCache().GetInformer(context.Background(), object); err != nil {
			return fmt.Errorf("follow %T: %w", object, err)
		}
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return c.all(ctx) })
	return builder.ControllerManagedBy(m).Named("namespace-templates").
		Watches(&accounts.NamespaceTemplate{}, all).
		WatchesMetadata(newNamespace(), all).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
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
	return reconcile.Result{RequeueAfter: after}, c.writeStatus(ctx, template, found)
}

// selected are the namespaces that a selector finds: not those that terminate, and not those of Kubernetes and of Credence itself.
func (c *Controller) selected(ctx context.Context, selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(newNamespace().GroupVersionKind())
	if err := c.client.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var namespaces []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if n := &list.Items[i]; n.DeletionTimestamp.IsZero() && !reserved(n.Name) {
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

// reserved reports whether no template may select a namespace.
func reserved(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == "credence-system"
}

// visit writes what a namespace lacks, unless that was done a short time ago and nothing has changed. It returns what is still missing; nil: nothing.
func (c *Controller) visit(ctx context.Context, template *accounts.NamespaceTemplate, before []*accounts.NamespaceTemplate, namespace *metav1.PartialObjectMetadata) *accounts.IncompleteNamespace {
	var older []*accounts.NamespaceTemplate
	known := fmt.Sprintf("%s %d %v", template.UID, template.Generation, namespace.Labels)
	for _, other := range before {
		if selector, err := selectorOf(other); err == nil && selector.Matches(labels.Set(namespace.Labels)) {
			older = append(older, other)
			known += fmt.Sprintf(" %s %d", other.UID, other.Generation)
		}
	}
	now := c.Now()
	if last := c.last(template.Name, namespace.UID); last.of == known && now.Before(last.again) {
		return last.problem
	}
	problem := c.write(ctx, template, older, namespace)
	again := now.Add(recheck)
	if problem != nil {
		again = now.Add(retry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done[template.Name] == nil {
		c.done[template.Name] = map[types.UID]visit{}
	}
	c.done[template.Name][namespace.UID] = visit{again, known, problem}
	return problem
}

func (c *Controller) last(template string, namespace types.UID) visit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[template][namespace]
}

// forget forgets all namespaces of a template but these.
func (c *Controller) forget(template string, but []*metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[types.UID]visit{}
	for _, namespace := range but {
		kept[namespace.UID] = c.done[template][namespace.UID]
	}
	if c.done[template] = kept; len(kept) == 0 {
		delete(c.done, template)
	}
}
