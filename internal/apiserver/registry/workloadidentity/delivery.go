package workloadidentity

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

const (
	// reportEvery is how often the entry of one reporter may change.
	reportEvery = time.Minute
	// repeated is after how long a report that changes nothing is recorded again.
	repeated = 50 * time.Minute
	// maxReporters bounds the entries of an identity.
	maxReporters = 16
	// maxReporter bounds the user name of an entry.
	maxReporter = 512
	maxSecrets  = 1_000_000
	// maxNames and maxName bound the names of Secrets in a report.
	maxNames, maxName = 5, 63 + 1 + 253
	maxMessage        = 1024
)

// DeliveryREST serves the subresource delivery of a kind: reports that change the caller's own entry in the status of an object, and nothing
// else of it.
type DeliveryREST struct {
	Reported
	longest   time.Duration
	clusters  clusters.Users
	sightings *clusters.Sightings
	clock     clock.PassiveClock
}

// Delivers reports whether an object has tokens of an identity delivered to a cluster. Its errors are API errors.
type Delivers func(cluster *clusters.Cluster, namespace, identity string) (bool, error)

var (
	_ rest.NamedCreater                   = &DeliveryREST{}
	_ rest.GroupVersionKindProvider       = &DeliveryREST{}
	_ rest.SubresourceObjectMetaPreserver = &DeliveryREST{}
)

// Reported is a kind of objects that agents report on.
type Reported struct {
	// Store lets status and finalizers change.
	Store    *genericregistry.Store
	Resource string
	// Delivers lets a cluster with fromContexts report on objects of any namespace that objects on it use; nil: of the namespaces that it lists.
	Delivers Delivers
	// Record changes the entry of a reporter in an object. Its errors are API errors.
	Record func(obj runtime.Object, reporter string, report v1alpha1.DeliveryReportSpec, now time.Time) error
}

// Reported is the kind of identities. One that objects on a cluster use may be of any namespace.
func (r *REST) Reported(delivers Delivers) Reported {
	return Reported{r.marks, "workloadidentities", delivers, func(obj runtime.Object, reporter string, report v1alpha1.DeliveryReportSpec, now time.Time) error {
		return record(obj.(*v1alpha1.WorkloadIdentity), reporter, report, now)
	}}
}

// NewDeliveryREST returns the subresource of a kind. Tokens have a longest lifetime. Users of clusters report on objects that their cluster
// may have.
func NewDeliveryREST(kind Reported, longest time.Duration, users clusters.Users, sightings *clusters.Sightings, clock clock.PassiveClock) *DeliveryREST {
	return &DeliveryREST{Reported: kind, longest: longest, clusters: users, sightings: sightings, clock: clock}
}

// New implements rest.Storage.
func (*DeliveryREST) New() runtime.Object { return &v1alpha1.DeliveryReport{} }

// Destroy implements rest.Storage.
func (*DeliveryREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*DeliveryREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("DeliveryReport")
}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements rest.SubresourceObjectMetaPreserver: a uid in the report is a
// precondition.
func (*DeliveryREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create takes a report. One that differs in nothing from the last one costs no write.
func (r *DeliveryREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	report, ok := obj.(*v1alpha1.DeliveryReport)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a DeliveryReport", obj))
	}
	user, ok := request.UserFrom(ctx)
	if !ok || user.GetName() == "" || len(user.GetName()) > maxReporter || !utf8.ValidString(user.GetName()) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("deliveries are reported by users whose name is 1 to %d bytes long", maxReporter))
	}
	cluster, err := clusters.Narrow(r.clusters, user, request.NamespaceValue(ctx), name, r.Delivers != nil)
	if err != nil {
		return nil, err
	}
	if err := r.used(cluster, request.NamespaceValue(ctx), name, report); err != nil {
		return nil, err
	}
	if report.Name != "" && report.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name %q is not the name in the URL, %q", report.Name, name))
	}
	report = report.DeepCopy()
	report.Name, report.ManagedFields = name, nil
	if admit != nil {
		if err := admit(ctx, report.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if errs := validateReport(report.Spec, r.longest, r.clock.Now()); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("DeliveryReport").GroupKind(), name, errs)
	}
	update := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		if uid := obj.(metav1.Object).GetUID(); report.UID != "" && report.UID != uid {
			return nil, apierrors.NewConflict(v1alpha1.Resource(r.Resource), name, fmt.Errorf("its uid is %s, the report is of %s", uid, report.UID))
		}
		return obj, r.Record(obj, user.GetName(), report.Spec, r.clock.Now())
	})
	updated, _, err := r.Store.Update(ctx, name, update, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	r.sightings.Saw(cluster, clusters.AgentVersion(ctx))
	report.UID = updated.(metav1.Object).GetUID()
	return report, nil
}

// used is 403 for a report on an identity of a namespace that the cluster of the reporter does not list, unless an object on the cluster has its
// tokens delivered. A report without Secrets takes an entry back, and needs no object any more.
func (r *DeliveryREST) used(cluster *clusters.Cluster, namespace, identity string, report *v1alpha1.DeliveryReport) error {
	if cluster == nil || r.Delivers == nil || report.Spec.Secrets == 0 || slices.Contains(cluster.Spec.Identities.Namespaces, namespace) {
		return nil
	}
	used, err := r.Delivers(cluster, namespace, identity)
	if err != nil || used {
		return err
	}
	return apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), identity, fmt.Errorf(
		"WorkloadCluster %s may not report on identities of the namespace %s that no object on it uses: spec.identities.namespaces does not list it", cluster.Name, namespace))
}

// record changes the entry of one reporter of an identity.
func record(wi *v1alpha1.WorkloadIdentity, reporter string, report v1alpha1.DeliveryReportSpec, now time.Time) error {
	deliveries, err := Enter(standing(wi, now), reporter, report, now, maxReporters, gone)
	if err != nil || deliveries == nil {
		return err
	}
	wi.Status.Deliveries = deliveries
	settle(wi, now)
	return nil
}

// Enter returns entries with that of one reporter changed; nil if nothing changes. The error is an API error: the report is too soon, or there
// are most entries, none of which is gone.
func Enter(deliveries []v1alpha1.Delivery, reporter string, report v1alpha1.DeliveryReportSpec, now time.Time, most int, gone func(v1alpha1.Delivery, time.Time) bool) ([]v1alpha1.Delivery, error) {
	if report.Secrets == 0 {
		report = v1alpha1.DeliveryReportSpec{} // nothing can fail
	}
	if report.Failure != nil { // it becomes part of a condition, which kubectl prints as it is
		report.Failure = &v1alpha1.DeliveryFailure{Reason: report.Failure.Reason, Message: wording.AbbreviateTo(wording.OneLine(report.Failure.Message), maxMessage)}
	}
	i := slices.IndexFunc(deliveries, func(d v1alpha1.Delivery) bool { return d.Reporter == reporter })
	entry := v1alpha1.Delivery{Reporter: reporter, ReportTime: metav1.NewTime(now.Truncate(time.Second)), DeliveryReportSpec: report}
	if i >= 0 {
		if equality.Semantic.DeepEqual(deliveries[i].DeliveryReportSpec, report) && now.Sub(deliveries[i].ReportTime.Time) < repeated {
			return nil, nil
		}
		if left := wait(deliveries[i], now); left > 0 {
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%s may report once in %s", reporter, reportEvery), int(math.Ceil(left.Seconds())))
		}
	}
	switch {
	case i >= 0:
		deliveries[i] = entry
	case report.Secrets == 0:
		return nil, nil
	case len(deliveries) < most:
		deliveries = append(deliveries, entry)
	default:
		place := slices.IndexFunc(deliveries, func(d v1alpha1.Delivery) bool { return gone(d, now) })
		if place < 0 {
			return nil, apierrors.NewConflict(v1alpha1.Resource("deliveryreports"), "", fmt.Errorf("%d others report deliveries of it already", most))
		}
		deliveries[place] = entry
	}
	return deliveries, nil
}

// standing are the entries that are kept, in a slice of their own. One without Secrets is kept for its time alone, until its reporter may
// report again.
func standing(wi *v1alpha1.WorkloadIdentity, now time.Time) []v1alpha1.Delivery {
	return Standing(wi.Status.Deliveries, now)
}

// Standing is that of any entries.
func Standing(deliveries []v1alpha1.Delivery, now time.Time) []v1alpha1.Delivery {
	return slices.DeleteFunc(slices.Clone(deliveries), func(d v1alpha1.Delivery) bool { return d.Secrets == 0 && wait(d, now) <= 0 })
}

// wait is for how long the reporter of an entry may not change it. An entry from the future is of a clock that was wrong.
func wait(d v1alpha1.Delivery, now time.Time) time.Duration {
	if left := d.ReportTime.Add(reportEvery).Sub(now); left <= reportEvery {
		return left
	}
	return 0
}

var nameForm = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9.-]+$`)

var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// validateReport allows for clocks that are wrong, and for tokens from before the longest lifetime was lowered to less than its default.
func validateReport(report v1alpha1.DeliveryReportSpec, longest time.Duration, now time.Time) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if report.Secrets < 0 || report.Secrets > maxSecrets {
		errs = append(errs, field.Invalid(spec.Child("secrets"), report.Secrets, fmt.Sprintf("must be 0 to %d", maxSecrets)))
	}
	if report.Delivered < 0 || report.Delivered > report.Secrets {
		errs = append(errs, field.Invalid(spec.Child("delivered"), report.Delivered, "must be 0 to the number of secrets"))
	}
	if (report.Expires != nil) != (report.Delivered > 0) {
		errs = append(errs, field.Invalid(spec.Child("expires"), report.Expires, "must be set where tokens are delivered, and nowhere else"))
	}
	if report.Oldest != nil && (report.Expires == nil || report.Expires.Before(report.Oldest)) {
		errs = append(errs, field.Invalid(spec.Child("oldest"), report.Oldest, "must be set with expires alone, and not be after it"))
	}
	for _, each := range []struct {
		name  string
		at    *metav1.Time
		ahead time.Duration
	}{
		{"expires", report.Expires, max(longest, keys.DefaultMaxLifetime) + keys.DefaultClockSkew},
		{"oldest", report.Oldest, keys.DefaultClockSkew},
	} {
		if each.at != nil && each.at.After(now.Add(each.ahead)) {
			errs = append(errs, field.Invalid(spec.Child(each.name), each.at.UTC().Format(time.RFC3339), fmt.Sprintf("must be at most %s from now: that of no token is later", each.ahead)))
		}
	}
	if report.Elsewhere < 0 || report.Elsewhere > report.Secrets {
		errs = append(errs, field.Invalid(spec.Child("elsewhere"), report.Elsewhere, "must be 0 to the number of secrets"))
	}
	if len(report.Names) > maxNames || slices.ContainsFunc(report.Names, func(name string) bool { return len(name) > maxName || !nameForm.MatchString(name) }) {
		errs = append(errs, field.Invalid(spec.Child("names"), wording.Abbreviate(fmt.Sprint(report.Names)), fmt.Sprintf("must be at most %d, each NAMESPACE/NAME", maxNames)))
	}
	if report.Failure == nil {
		return errs
	}
	if !reasonForm.MatchString(report.Failure.Reason) {
		errs = append(errs, field.Invalid(spec.Child("failure", "reason"), wording.Abbreviate(report.Failure.Reason), "must be a word in CamelCase, at most 64 characters long"))
	}
	if message := report.Failure.Message; utf8.RuneCountInString(message) > maxMessage || !utf8.ValidString(message) {
		errs = append(errs, field.Invalid(spec.Child("failure", "message"), wording.Abbreviate(message), fmt.Sprintf("must be at most %d characters of UTF-8", maxMessage)))
	}
	return errs
}

// marksStrategy lets conditions, deliveries and finalizers change, and nothing else.
type marksStrategy struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (marksStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newWI, oldWI := obj.(*v1alpha1.WorkloadIdentity), old.(*v1alpha1.WorkloadIdentity)
	status, finalizers := newWI.Status, newWI.Finalizers
	oldWI.DeepCopyInto(newWI)
	newWI.Status.Conditions, newWI.Status.Deliveries, newWI.Finalizers = status.Conditions, status.Deliveries, finalizers
}

// ValidateUpdate implements rest.RESTUpdateStrategy: reports are validated, and identities from before a rule are reported like others.
func (marksStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (marksStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
