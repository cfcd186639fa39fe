package credentialsbinding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/wording"
)

// Objects finds the objects of ContextKinds that refer to any of some bindings. The error is 503 while they are not known.
type Objects interface {
	Bound(bindings []types.NamespacedName) ([]contexts.Counted, error)
}

// noObjects are those of a server without ContextKinds.
type noObjects struct{}

// Bound implements Objects.
func (noObjects) Bound([]types.NamespacedName) ([]contexts.Counted, error) { return nil, nil }

// reportedFor is for how long a report of Secrets counts. Agents repeat theirs every hour.
const reportedFor = 2 * time.Hour

func outdated(d v1alpha1.Delivery, now time.Time) bool {
	return now.Sub(d.ReportTime.Time) > reportedFor
}

func holds(binding *v1alpha1.CredentialsBinding) bool {
	return slices.Contains(binding.Finalizers, v1alpha1.FinalizerConsumers)
}

// Reported is the kind of bindings, for reports of the Secrets that name them. A binding is held from the first report of a Secret elsewhere.
func (r *REST) Reported() workloadidentity.Reported {
	return workloadidentity.Reported{Store: r.status, Resource: "credentialsbindings", Record: func(obj runtime.Object, reporter string, report v1alpha1.DeliveryReportSpec, now time.Time) error {
		binding := obj.(*v1alpha1.CredentialsBinding)
		deliveries, err := workloadidentity.Enter(workloadidentity.Standing(binding.Status.Deliveries, now), reporter, report, now, maxReporters, displaced)
		if err != nil || deliveries == nil {
			return err
		}
		binding.Status.Deliveries = deliveries
		hold(binding, report.Elsewhere > 0)
		return nil
	}}
}

// hold adds the finalizer to a binding that is used, unless it is being deleted.
func hold(binding *v1alpha1.CredentialsBinding, used bool) {
	if used && !holds(binding) && binding.DeletionTimestamp == nil {
		binding.Finalizers = append(binding.Finalizers, v1alpha1.FinalizerConsumers)
	}
}

// consumers names what uses a binding: objects of ContextKinds, and Secrets that agents have reported. elsewhere are those outside of its
// namespace, which hold it. Those of its own namespace are deleted with the namespace, and seen by the users who may delete the binding.
func (r *REST) consumers(binding *v1alpha1.CredentialsBinding, now time.Time) (own, elsewhere []string, err error) {
	found, err := r.Objects.Bound([]types.NamespacedName{{Namespace: binding.Namespace, Name: binding.Name}})
	for _, each := range found {
		to := &elsewhere
		if each.Namespace == binding.Namespace {
			to = &own
		}
		*to = append(*to, each.Resource.String()+" "+strings.TrimPrefix(each.Namespace+"/"+each.Name, "/"))
	}
	for _, d := range binding.Status.Deliveries {
		if outdated(d, now) {
			continue
		}
		if d.Elsewhere > 0 {
			elsewhere = append(elsewhere, fmt.Sprintf("%s that %s keeps (%s)", wording.Plural(int(d.Elsewhere), "Secret", "Secrets"), wording.OneLine(d.Reporter), wording.Some(d.Names)))
		}
		if n := d.Secrets - d.Elsewhere; n > 0 {
			own = append(own, wording.Plural(int(n), "Secret", "Secrets"))
		}
	}
	slices.Sort(own)
	slices.Sort(elsewhere)
	return own, elsewhere, err
}

// stays returns why a deletion waits, and the command that ends it.
func stays(binding *v1alpha1.CredentialsBinding, why string) string {
	return fmt.Sprintf("CredentialsBinding %s/%s stays while consumers of other namespaces use it: %s. A user who may update it ends that with: credence identity release credentialsbinding/%s -n %s --force",
		binding.Namespace, binding.Name, why, binding.Name, binding.Namespace)
}

// maxReporters bounds the entries of a binding. Each of them holds it, unlike those of an identity, so that there are as many as clusters may use it.
const maxReporters = 128

// displaced reports whether an entry makes place for another one.
func displaced(d v1alpha1.Delivery, now time.Time) bool { return d.Elsewhere == 0 || outdated(d, now) }

// keep holds a binding that consumers of other namespaces use. One that is being deleted is released after the last of these; until then a
// condition names them.
func (r *REST) keep(ctx context.Context, binding *v1alpha1.CredentialsBinding) error {
	if binding.DeletionTimestamp != nil && holds(binding) {
		binding = r.entitled(ctx, binding)
	}
	_, elsewhere, err := r.consumers(binding, r.clock.Now())
	why := wording.Some(elsewhere)
	switch {
	case binding.DeletionTimestamp == nil && (len(elsewhere) == 0 || holds(binding)), binding.DeletionTimestamp != nil && !holds(binding):
		return nil
	case err != nil:
		why = "it is not known which: " + wording.OneLine(err.Error())
	}
	return r.mark(ctx, binding, nil, func(now *v1alpha1.CredentialsBinding) {
		hold(now, true)
		switch {
		case now.DeletionTimestamp == nil || !holds(now):
		case why == "" && now.ResourceVersion != binding.ResourceVersion: // a report may have come since: it is looked at again
		case why == "":
			now.Finalizers = slices.DeleteFunc(now.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerConsumers })
		default:
			meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReferred, Status: metav1.ConditionTrue, Reason: "Consumers", ObservedGeneration: now.Generation,
				LastTransitionTime: metav1.NewTime(r.clock.Now()), Message: stays(now, why),
			})
		}
	})
}

// entitled returns a binding without the reports of service accounts that may not use it any more, as when its namespace is deleted with the
// RoleBindings in it: their Secrets get nothing by it.
func (r *REST) entitled(ctx context.Context, binding *v1alpha1.CredentialsBinding) *v1alpha1.CredentialsBinding {
	found := binding.DeepCopy()
	found.Status.Deliveries = slices.DeleteFunc(found.Status.Deliveries, func(d v1alpha1.Delivery) bool {
		namespace, account, err := serviceaccount.SplitUsername(d.Reporter)
		if err != nil {
			return false // the groups of another user are not known
		}
		allowed, err := rights.Granted(ctx, r.references.authorizer, serviceaccount.UserInfo(namespace, account, ""), "use",
			authority.Object{Kind: authority.CredentialsBindings, Namespace: binding.Namespace, Name: binding.Name})
		return err == nil && !allowed
	})
	return found
}

// mark changes finalizers and status of a binding; another one of its name stays as it is.
func (r *REST) mark(ctx context.Context, binding *v1alpha1.CredentialsBinding, dryRun []string, change func(*v1alpha1.CredentialsBinding)) error {
	_, _, err := r.status.Update(request.WithNamespace(ctx, binding.Namespace), binding.Name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		now := old.DeepCopyObject().(*v1alpha1.CredentialsBinding)
		if now.UID == binding.UID {
			change(now)
		}
		return now, nil
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Delete implements rest.GracefulDeleter. A deletion of a binding that is in use is warned about, and a use that was just seen holds it.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if obj, err := r.Store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"}); err == nil && len(options.DryRun) == 0 {
		if err := r.keep(ctx, obj.(*v1alpha1.CredentialsBinding)); err != nil {
			return nil, false, err
		}
	}
	return r.Store.Delete(ctx, name, r.warning(validate), options)
}

// DeleteCollection implements rest.CollectionDeleter, with the same warnings.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, r.warning(validate), options, list)
}

// warning warns about each binding in use before it is validated. Objects that can't be read are left out.
func (r *REST) warning(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		binding := obj.(*v1alpha1.CredentialsBinding)
		own, elsewhere, _ := r.consumers(binding, r.clock.Now())
		if len(own) > 0 {
			warning.AddWarning(ctx, "", fmt.Sprintf("CredentialsBinding %s/%s is in use in its namespace: %s: no more credentials are given by it",
				binding.Namespace, binding.Name, wording.Some(own)))
		}
		if len(elsewhere) > 0 {
			warning.AddWarning(ctx, "", stays(binding, wording.Some(elsewhere)))
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}
