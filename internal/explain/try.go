package explain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/cluster"
)

// tryOut has the API server admit the pod without keeping it, where the user may create pods: all webhooks, policies and quotas
// decide too.
func (x *Pod) tryOut(ctx context.Context, workload *cluster.API, subject Subject, requested *corev1.Pod) error {
	if _, mirrored := requested.Annotations[corev1.MirrorPodAnnotationKey]; mirrored {
		return nil // only a kubelet creates these
	}
	pod := asNew(requested, subject)
	admitted, err := TryPod(ctx, workload, pod, &x.Warnings)
	if apierrors.IsAlreadyExists(err) {
		pod.Name, pod.GenerateName = "", subject.name+"-"
		admitted, err = TryPod(ctx, workload, pod, &x.Warnings)
	}
	if err == nil {
		x.DryRun = true
		x.compare(admitted)
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("try the pod out: %w", err)
	}
	_, byRBAC := cluster.MissingRight(err.Error())
	switch {
	case apierrors.IsForbidden(err) && byRBAC:
		x.Notes = append(x.Notes, "you may not create pods here, so none was tried out: what other rules of the cluster refuse is not known")
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dry run"):
		x.Notes = append(x.Notes, "no pod could be tried out: "+err.Error())
	case status.Status().Code == http.StatusTooManyRequests, apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err):
		return err
	default:
		x.DryRun = true
		x.Verdict, x.Code, x.Reason, x.preview = Refused, status.Status().Code, err.Error(), nil
		if x.Code >= http.StatusInternalServerError {
			x.Reason += ". A cluster admin finds out why with: credence doctor"
		}
	}
	return nil
}

// asNew returns the pod without the fields that the API server sets.
func asNew(requested *corev1.Pod, subject Subject) *corev1.Pod {
	pod := requested.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{Name: pod.Name, GenerateName: pod.GenerateName, Namespace: subject.namespace, Labels: pod.Labels, Annotations: pod.Annotations}
	pod.Status = corev1.PodStatus{}
	if subject.exists || pod.Name == "" {
		pod.Name, pod.GenerateName = "", subject.name+"-"
	}
	if subject.exists {
		pod.Spec.NodeName = "" // the scheduler's choice
	}
	return pod
}

// TryPod has the API server admit a pod without keeping it, and returns the pod after admission. Warnings that it has not yet are appended.
func TryPod(ctx context.Context, workload *cluster.API, pod *corev1.Pod, warnings *[]string) (*corev1.Pod, error) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	admitted := &corev1.Pod{}
	at := cluster.Place{Namespace: pod.Namespace, Resource: "pods"}
	err := workload.Create(ctx, at, pod, admitted, cluster.DryRun, cluster.Warnings((*collectedWarnings)(warnings)))
	return admitted, err
}

// collectedWarnings are those of a response, each once.
type collectedWarnings []string

func (w *collectedWarnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" && !slices.Contains(*w, text) {
		*w = append(*w, text)
	}
}

// compare takes over what the API server has made of the pod.
func (x *Pod) compare(admitted *corev1.Pod) {
	for _, in := range x.Identities {
		if pods.Carries(admitted, x.ServiceAccount, in.Name) {
			if in.Use == useUnknown {
				in.Use = useAllowed // the webhook has refused it otherwise
			}
			x.Verdict = Admitted
			continue
		}
		if x.preview != nil && !pods.Carries(x.preview, x.ServiceAccount, in.Name) {
			continue // all of its containers are left out
		}
		x.Verdict, x.Code = Unserved, 0
		x.Reason = fmt.Sprintf("the API server would create the pod without identity %s: Credence's webhook does not see the pods of namespace %s. A cluster admin finds out why with: credence doctor", in.Name, x.Namespace)
	}
	if x.Profile != nil && len(x.Profile.FilledIn) > 0 && admitted.Annotations[accounts.AnnotationFilledIn] == "" {
		x.Verdict, x.Code = Unserved, 0
		x.Reason = fmt.Sprintf("the API server would create the pod without what its profile fills in: Credence's webhook does not see the pods of namespace %s. A cluster admin finds out why with: credence doctor", x.Namespace)
	}
	if x.Verdict == Admitted {
		x.open, x.preview = nil, admitted
	}
}
