package credentialsbinding

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
)

// Identities finds WorkloadIdentities by name in the namespace of the request; its errors are API errors.
type Identities interface {
	Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error)
	// Hold keeps an identity, once it is deleted, while bindings refer to it. It fails if the identity is being deleted.
	Hold(ctx context.Context, name string, dryRun bool) error
}

// references checks what a binding refers to.
type references struct {
	identities Identities
	authorizer authorizer.UnconditionalAuthorizer
}

// check is called for a binding that is created, or updated from an old one. First it reviews the rights of the writer, on the old
// credentials and on the new ones, so that a writer without them learns nothing. Then the identity must be for the provider, and be of the
// same account as the identity before it. Last, the identity is held. One that does not exist yet is a warning: examine checks it later.
func (r references) check(ctx context.Context, binding, old *v1alpha1.CredentialsBinding, dryRun bool) error {
	if old == nil {
		old = &v1alpha1.CredentialsBinding{}
	}
	if sameReferences(binding, old) {
		return nil
	}
	writer, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("credentials are bound by authenticated users only")
	}
	for _, version := range []struct {
		binding *v1alpha1.CredentialsBinding
		former  string
	}{{binding, ""}, {old, "the former "}} {
		if err := r.checkRights(ctx, writer, binding.Name, version.binding, version.former); err != nil {
			return err
		}
	}
	if binding.WorkloadIdentityRef == nil {
		return nil
	}
	to := binding.WorkloadIdentityRef
	err := r.checkIdentity(ctx, binding, old)
	if err == nil {
		err = r.identities.Hold(request.WithNamespace(ctx, to.Namespace), to.Name, dryRun)
	}
	if apierrors.IsNotFound(err) {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s: WorkloadIdentity %s does not exist yet: once it does, and user %q may use it, the binding gives its tokens", identityPath, nameOf(to), writer.GetName()))
		return nil
	}
	return err
}

// checkRights checks that a writer may get the Secret of a binding, or use its identity.
func (r references) checkRights(ctx context.Context, writer user.Info, name string, binding *v1alpha1.CredentialsBinding, former string) error {
	for _, needed := range []struct {
		reference *v1alpha1.CredentialsReference
		path      *field.Path
		verb      string
		kind      authority.Kind
	}{
		{binding.SecretRef, secretPath, "get", authority.Kind{Resource: "secrets"}},
		{binding.WorkloadIdentityRef, identityPath, "use", authority.WorkloadIdentities},
	} {
		if needed.reference == nil {
			continue
		}
		object := authority.Object{Kind: needed.kind, Namespace: needed.reference.Namespace, Name: needed.reference.Name}
		if granted, err := rights.Granted(ctx, r.authorizer, writer, needed.verb, object); err != nil {
			return err
		} else if !granted {
			return apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), name, fmt.Errorf(
				"%s%s: user %q cannot %s resource %q in API group %q in the namespace %q", former, needed.path,
				writer.GetName(), needed.verb, object.Resource, object.Group, object.Namespace))
		}
	}
	return nil
}

// checkIdentity compares the identity of a binding with its provider, and with the account of the identity before. The error is 404 if the
// identity does not exist.
func (r references) checkIdentity(ctx context.Context, binding, old *v1alpha1.CredentialsBinding) error {
	refused := func(fault string) error {
		return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("CredentialsBinding").GroupKind(), binding.Name, field.ErrorList{
			field.Invalid(identityPath, nameOf(binding.WorkloadIdentityRef), fault)})
	}
	wi, err := r.find(ctx, binding.WorkloadIdentityRef)
	if err != nil {
		return err
	}
	if fault := unfit(wi, binding); fault != "" {
		return refused(fault)
	}
	if old.WorkloadIdentityRef == nil {
		return nil
	}
	account, before := old.Status.Account, nameOf(old.WorkloadIdentityRef)
	if len(account) == 0 {
		was, err := r.find(ctx, old.WorkloadIdentityRef)
		if apierrors.IsNotFound(err) {
			return nil // its account is not known any more
		} else if err != nil {
			return err
		}
		config, known := configOf(was)
		if !known {
			return refused(fmt.Sprintf("may be of another account than %s, to which the binding refers: the providerConfig of that is not valid; make another binding", before))
		}
		account = accountOf(config)
	}
	if fault := moved(account, wi); fault != "" {
		return refused(fmt.Sprintf("is of another account than %s, to which the binding refers: %s; make another binding", before, fault))
	}
	return nil
}

// unfit returns why a binding can't refer to an identity, or an empty text.
func unfit(wi *v1alpha1.WorkloadIdentity, binding *v1alpha1.CredentialsBinding) string {
	switch {
	case wi.DeletionTimestamp != nil:
		return "is being deleted: it takes no new references"
	case wi.Spec.TargetSystem.Type != binding.Provider.Type:
		return fmt.Sprintf("is for %s, and the binding for %s", wi.Spec.TargetSystem.Type, binding.Provider.Type)
	}
	return ""
}

// accountOf returns the fields of a configuration that its account consists of.
func accountOf(config target.Config) []v1alpha1.CredentialsAccountField {
	if config == nil {
		return nil
	}
	var account []v1alpha1.CredentialsAccountField
	for _, each := range config.Account() {
		if each.Value != "" {
			account = append(account, v1alpha1.CredentialsAccountField{Path: each.Path.String(), Value: each.Value})
		}
	}
	return account
}

// moved returns how the account of an identity differs from an earlier one, or an empty text.
func moved(account []v1alpha1.CredentialsAccountField, wi *v1alpha1.WorkloadIdentity) string {
	config, _ := configOf(wi)
	now := accountOf(config)
	for _, was := range account {
		is := ""
		if i := slices.IndexFunc(now, func(f v1alpha1.CredentialsAccountField) bool { return f.Path == was.Path }); i >= 0 {
			is = now[i].Value
		}
		if is != was.Value {
			return fmt.Sprintf("%s is %q, and was %q", was.Path, is, was.Value)
		}
	}
	return ""
}

func (r references) find(ctx context.Context, reference *v1alpha1.CredentialsReference) (*v1alpha1.WorkloadIdentity, error) {
	return r.identities.Identity(request.WithNamespace(ctx, reference.Namespace), reference.Name)
}

// configOf is the configuration of an identity, nil if it has none. One that was stored before it was checked may not be known.
func configOf(wi *v1alpha1.WorkloadIdentity) (config target.Config, known bool) {
	system := wi.Spec.TargetSystem
	if system.ProviderConfig == nil {
		return nil, true
	}
	config, errs := targets.For(system.Type).Parse(system.ProviderConfig.Raw, field.NewPath("spec", "targetSystem", "providerConfig"))
	if len(errs) > 0 {
		return nil, false
	}
	return config, true
}

func nameOf(reference *v1alpha1.CredentialsReference) string {
	return reference.Namespace + "/" + reference.Name
}
