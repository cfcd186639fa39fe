package credentialsbinding

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/authority"
)

// maxQuotas is one of each scope.
const maxQuotas = 2

func validateQuotas(quotas []v1alpha1.CredentialsReference) field.ErrorList {
	if n := len(quotas); n > maxQuotas {
		return field.ErrorList{field.TooMany(quotasPath, n, maxQuotas)}
	}
	var errs field.ErrorList
	for i, each := range quotas {
		at := quotasPath.Index(i)
		errs = append(errs, matches(at.Child("namespace"), each.Namespace, utilvalidation.IsDNS1123Label)...)
		if each.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must provide a name"))
			continue
		}
		errs = append(errs, matches(at.Child("name"), each.Name, utilvalidation.IsDNS1123Subdomain)...)
	}
	return errs
}

// limits checks which Quotas a new binding lists: they never change.
type limits struct {
	quotas     rest.Getter
	namespaces Namespaces
	authorizer authorizer.UnconditionalAuthorizer
}

// Namespaces finds namespaces of the cluster.
type Namespaces interface {
	Get(name string) (*corev1.Namespace, error)
}

// check reviews that the writer may get each Quota, so that a writer without that right learns nothing of them. Then there must be at most
// one of each scope. One that does not exist yet is a warning.
func (l limits) check(ctx context.Context, binding *v1alpha1.CredentialsBinding) error {
	if len(binding.Quotas) == 0 {
		return nil
	}
	writer, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("Quotas are named by authenticated users only")
	}
	for i, each := range binding.Quotas {
		object := authority.Object{Kind: authority.Kind{Group: v1alpha1.GroupName, Resource: "quotas"}, Namespace: each.Namespace, Name: each.Name}
		if granted, err := rights.Granted(ctx, l.authorizer, writer, "get", object); err != nil {
			return err
		} else if !granted {
			return apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), binding.Name, fmt.Errorf(
				"%s: user %q cannot get resource %q in API group %q in the namespace %q", quotasPath.Index(i), writer.GetName(), object.Resource, object.Group, object.Namespace))
		}
	}
	refused := func(err *field.Error) error {
		return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("CredentialsBinding").GroupKind(), binding.Name, field.ErrorList{err})
	}
	if namespace, err := l.namespaces.Get(binding.Namespace); err != nil && !apierrors.IsNotFound(err) {
		return unavailable.New("whether Quotas are enforced in namespace %s is not known: %v", binding.Namespace, err)
	} else if err != nil || namespace.Labels[v1alpha1.LabelNamespaceQuotas] != v1alpha1.NamespaceEnabled {
		return refused(field.Forbidden(quotasPath, fmt.Sprintf("are not enforced in namespace %s: a cluster admin enforces them with: kubectl label namespace %s %s=%s",
			binding.Namespace, binding.Namespace, v1alpha1.LabelNamespaceQuotas, v1alpha1.NamespaceEnabled)))
	}
	scopes := map[bool]string{}
	for i, each := range binding.Quotas {
		found, err := l.quotas.Get(request.WithNamespace(ctx, each.Namespace), each.Name, &metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			warning.AddWarning(ctx, "", fmt.Sprintf("%s: %s", quotasPath.Index(i), missingQuota(&each)))
			continue
		case err != nil:
			return err
		}
		ofProjects := quota.OfProjects(found.(*v1alpha1.Quota))
		if other := scopes[ofProjects]; other != "" {
			return refused(field.Invalid(quotasPath.Index(i), nameOf(&each), "only one Quota of each scope (projects or credentials) can be listed, and "+other+" has the same"))
		}
		scopes[ofProjects] = nameOf(&each)
	}
	return nil
}

// missing returns why objects can't use a binding yet, as one of its Quotas does not exist; or an empty text.
func (l limits) missing(ctx context.Context, binding *v1alpha1.CredentialsBinding) (string, error) {
	for _, each := range binding.Quotas {
		ctx := request.WithNamespace(ctx, each.Namespace)
		_, err := l.quotas.Get(ctx, each.Name, &metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) { // it may have been created a moment ago
			_, err = l.quotas.Get(ctx, each.Name, &metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return missingQuota(&each), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", nil
}

func missingQuota(of *v1alpha1.CredentialsReference) string {
	return fmt.Sprintf("Quota %s does not exist yet: until it does, objects that name the binding are refused", nameOf(of))
}
