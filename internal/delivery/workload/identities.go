package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// ErrList is the error of a list of identities that can't be understood.
var ErrList = errors.New("invalid list of identities")

// Identities returns the identities that a service account gives its pods: those of its profile, or of its annotation.
func Identities(ctx context.Context, reader client.Reader, account metav1.Object) ([]string, error) {
	annotation := account.GetAnnotations()[v1alpha1.AnnotationAccountIdentities]
	var profile accounts.ServiceAccountProfile
	err := reader.Get(ctx, client.ObjectKey{Namespace: account.GetNamespace(), Name: account.GetName()}, &profile)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, err
	case err != nil || profile.Spec.WorkloadIdentities == nil:
		names, err := tokensecret.ParseIdentities(annotation)
		if err != nil {
			return nil, fmt.Errorf("%w: annotation %s %w", ErrList, v1alpha1.AnnotationAccountIdentities, err)
		}
		return names, nil
	case strings.TrimSpace(annotation) != "":
		return nil, fmt.Errorf("%w: annotation %s and spec.workloadIdentities of the ServiceAccountProfile both list identities, and only one of them may", ErrList, v1alpha1.AnnotationAccountIdentities)
	}
	return profile.Spec.WorkloadIdentities, nil
}

// Lists reports whether a profile lists identities.
func Lists(object client.Object) bool {
	profile, ok := object.(*accounts.ServiceAccountProfile)
	return ok && profile.Spec.WorkloadIdentities != nil
}
