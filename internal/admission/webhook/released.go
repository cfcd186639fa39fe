package webhook

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/tokensecret"
)

// maxCounted is how many pods of a service account are looked at.
const maxCounted = 500

// Pods lists the pods of a service account that have not ended: at most limit of them, and whether there are more.
type Pods interface {
	List(ctx context.Context, namespace, account string, limit int64) (found []corev1.Pod, more bool, err error)
}

// LivePods lists pods from the API.
func LivePods(client kubernetes.Interface) Pods { return livePods{client} }

type livePods struct{ client kubernetes.Interface }

func (l livePods) List(ctx context.Context, namespace, account string, limit int64) ([]corev1.Pod, bool, error) {
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("spec.serviceAccountName", account),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)
	list, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector.String(), Limit: limit})
	if err != nil {
		return nil, false, err
	}
	return list.Items, list.Continue != "", nil
}

// accountReviews refuses identities that the account's profile lists, too, and warns how many pods still have an identity that is taken off their service account. That they keep it, the policy
// credence-serviceaccount-released warns of in any case: where pods can't be counted, no number is given.
func accountReviews(needs Needs) decider[metav1.PartialObjectMetadata] {
	return func(ctx context.Context, r *request[metav1.PartialObjectMetadata]) (answer, error) {
		if r.Resource.Group != "" || r.Resource.Resource != "serviceaccounts" || r.SubResource != "" || r.Object == nil ||
			r.Operation != admissionv1.Create && (r.Operation != admissionv1.Update || r.OldObject == nil) {
			return wrong("this webhook is for CREATE and UPDATE of serviceaccounts, not for %s of %s", r.Operation, r.about()), nil
		}
		if denial := listedTwice(ctx, needs, r); denial != nil {
			return refused(denial), nil
		}
		if r.OldObject == nil {
			return answer{}, nil
		}
		released := releasedIdentities(r.OldObject, r.Object)
		if len(released) == 0 {
			return answer{}, nil
		}
		found, more, err := needs.Pods.List(ctx, r.Namespace, r.Name, maxCounted)
		if err != nil {
			needs.Log.WarnContext(ctx, "pods of a service account can't be counted", "namespace", r.Namespace, "serviceAccount", r.Name, "error", err)
			return answer{}, nil
		}
		var warnings []string
		for _, identity := range released {
			users := 0
			for i := range found {
				if pods.Carries(&found[i], r.Name, identity) {
					users++
				}
			}
			if users > 0 {
				warnings = append(warnings, inUse(r.Name, identity, users, more))
			}
		}
		return answer{warnings: warnings}, nil
	}
}

// listedTwice refuses an annotation of a service account whose profile lists its identities. Where the profile can't be read, the account's
// pods are refused later.
func listedTwice(ctx context.Context, needs Needs, r *request[metav1.PartialObjectMetadata]) *decision.Denial {
	if r.Object.Annotations[v1alpha1.AnnotationAccountIdentities] == "" {
		return nil
	}
	object, err := needs.Profiles.Profile(ctx, r.Namespace, r.Name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			needs.Log.WarnContext(ctx, "the profile of a service account can't be read", "namespace", r.Namespace, "serviceAccount", r.Name, "error", err)
		}
		return nil
	}
	_, denial := pods.NamesOf(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, Annotations: r.Object.Annotations}}, profile.Resolve(object, nil))
	return denial
}

// releasedIdentities are those that an account gave its pods, and gives them no more. Of a list that can't be understood nothing is
// released.
func releasedIdentities(before, after metav1.Object) []string {
	had, err := tokensecret.ParseIdentities(before.GetAnnotations()[v1alpha1.AnnotationAccountIdentities])
	if err != nil {
		return nil
	}
	has, err := tokensecret.ParseIdentities(after.GetAnnotations()[v1alpha1.AnnotationAccountIdentities])
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(had, func(name string) bool { return slices.Contains(has, name) })
}

func inUse(account, identity string, users int, more bool) string {
	least, what := "", "pods of service account "+account+" still use"
	if more {
		least = "at least "
	} else if users == 1 {
		what = "pod of service account " + account + " still uses"
	}
	return fmt.Sprintf("%s%d %s WorkloadIdentity %s", least, users, what, identity)
}
