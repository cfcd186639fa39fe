package nodereview

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/gmsa"
)

// Config is what verdicts are by. All of it is read live.
type Config struct {
	// Pod reads a pod. One that does not exist is the error NotFound of the API.
	Pod func(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Sources read what decides about a pod, except its identities.
	Sources drift.Sources
}

// REST serves nodereviews. RBAC lets all nodes create them, so a node is answered about its own pods alone.
type REST struct{ Config }

var (
	_ rest.Storage              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.Creater              = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns the resource.
func NewREST(config Config) *REST { return &REST{config} }

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &identityv1alpha1.NodeReview{} }

// Destroy implements rest.Storage.
func (*REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "nodereview" }

// Create gives a verdict.
func (r *REST) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	created, ok := obj.(*identityv1alpha1.NodeReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a NodeReview", obj))
	}
	review := created.DeepCopy()
	review.Status, review.ManagedFields = identityv1alpha1.NodeReviewStatus{}, nil
	node, err := nodeOf(ctx)
	if err != nil {
		return nil, err
	}
	if errs := validate(review.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(identityv1alpha1.SchemeGroupVersion.WithKind("NodeReview").GroupKind(), review.Name, errs)
	}
	if admit != nil {
		if err := admit(ctx, review.DeepCopy()); err != nil {
			return nil, err
		}
	}
	pod, err := r.podOn(ctx, node, review.Spec)
	if err != nil {
		return nil, err
	}
	if review.Status, err = r.decide(ctx, pod, review.Spec); err != nil {
		return nil, unavailable.New("what decides about pod %s/%s can't be read: %v", pod.Namespace, pod.Name, err)
	}
	return review, nil
}

// maxName is how long names of the API are at most.
const maxName = 253

func validate(spec identityv1alpha1.NodeReviewSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	for _, each := range []struct{ name, value string }{{"namespace", spec.Namespace}, {"name", spec.Name}, {"uid", spec.UID}} {
		if each.value == "" {
			errs = append(errs, field.Required(path.Child(each.name), "a review is of one pod"))
		}
	}
	for _, each := range []struct{ name, value string }{{"namespace", spec.Namespace}, {"name", spec.Name}, {"uid", spec.UID}, {"container", spec.Container}} {
		if len(each.value) > maxName {
			errs = append(errs, field.TooLong(path.Child(each.name), "", maxName))
		}
	}
	if len(spec.CredentialSpec) > gmsa.MaxContents {
		errs = append(errs, field.TooLong(path.Child("credentialSpec"), "", gmsa.MaxContents))
	}
	return errs
}

// podOn reads a pod of a node. A node does not learn whether there are others: the refusal is the same for each.
func (r *REST) podOn(ctx context.Context, node string, spec identityv1alpha1.NodeReviewSpec) (*corev1.Pod, error) {
	pod, err := r.Pod(ctx, spec.Namespace, spec.Name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && (string(pod.UID) != spec.UID || pod.Spec.NodeName != node):
		return nil, refused("node %q has no pod %s/%s with uid %q", node, spec.Namespace, spec.Name, spec.UID)
	case err != nil:
		return nil, unavailable.New("pod %s/%s can't be read: %v", spec.Namespace, spec.Name, err)
	}
	return pod, nil
}

func refused(format string, args ...any) error {
	return apierrors.NewForbidden(identityv1alpha1.Resource("nodereviews"), "", fmt.Errorf(format, args...))
}
