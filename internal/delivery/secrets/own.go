package secrets

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

// own returns why a Secret whose context is a service account is not one that the agent keeps for it, or "". It reads
// the account itself, because others may have written the Secret.
func own(ctx context.Context, reader client.Reader, secret metav1.Object, request tokensecret.Request) (string, error) {
	object := request.Context
	account := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	owner, uid, owned := workload.AccountOf(secret)
	switch {
	case object.Namespace != secret.GetNamespace():
		return fmt.Sprintf("its context is a service account of the namespace %q; tokens of an account are kept in its own namespace", object.Namespace), nil
	case request.Identity.Namespace != secret.GetNamespace():
		return fmt.Sprintf("its identity is one of the namespace %q; service accounts get identities of their own namespace", request.Identity.Namespace), nil
	case secret.GetName() != tokensecret.NameFor(object.Name, request.Identity.Name):
		return "its context is a service account, but it is not the Secret that is kept for that: annotate the service account with " + v1alpha1.AnnotationAccountIdentities + " instead", nil
	case !owned || owner != account || uid != object.UID:
		return "its owner is not the service account that is its context", nil
	}
	found := workload.NewAccount()
	if err := reader.Get(ctx, account, found); client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err != nil || found.UID != uid {
		return fmt.Sprintf("the service account %s with the uid %s does not exist", account, uid), nil
	}
	if secret.GetAnnotations()[v1alpha1.AnnotationReleased] != "" {
		return "", nil // pods still mount it, or may in a moment
	}
	wanted, err := workload.Identities(ctx, reader, found)
	if errors.Is(err, workload.ErrList) {
		return "", nil // an invalid annotation is not an order to delete; the account gets an Event
	}
	if err != nil {
		return "", err
	}
	for _, name := range wanted {
		if name == request.Identity.Name {
			return "", nil
		}
	}
	return fmt.Sprintf("the service account %s does not name the identity %s any more", account, request.Identity.Name), nil
}
