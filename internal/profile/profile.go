package profile

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/target"
)

// Profile is what a service account stands for, as far as its pods are concerned. The zero value is that of an account without a profile:
// it fills in nothing, and refuses nothing.
type Profile struct {
	Namespace, Name string
	Exists          bool
	Spec            accounts.ServiceAccountProfileSpec
	// Template is the name of the SecurityContextTemplate that Contexts are of, or empty.
	Template string
	Contexts accounts.SecurityContexts
	// Faults are why the profile can not be applied: a missing template, or a security context that Kubernetes would refuse, with the
	// message of Kubernetes and the field of the profile or of the template. All pods are refused meanwhile.
	Faults field.ErrorList
}

// Resolve returns the profile of an account. Template is the object that TemplateOf names, nil if it does not exist.
func Resolve(p *accounts.ServiceAccountProfile, template *accounts.SecurityContextTemplate) Profile {
	resolved := Profile{Namespace: p.Namespace, Name: p.Name, Exists: true, Spec: p.Spec, Template: TemplateOf(p)}
	at := field.NewPath("spec", "securityContext")
	switch {
	case p.Spec.SecurityContext == nil:
		return resolved
	case resolved.Template == "":
		resolved.Contexts = p.Spec.SecurityContext.SecurityContexts
	case template == nil:
		resolved.Faults = field.ErrorList{field.NotFound(at.Child("templateRef", "name"), resolved.Template)}
		return resolved
	default:
		resolved.Contexts, at = template.Spec, field.NewPath("spec")
	}
	resolved.Faults = Validate(resolved.Contexts, at)
	return resolved
}

// TemplateOf is the name of the SecurityContextTemplate that a profile refers to, or empty.
func TemplateOf(p *accounts.ServiceAccountProfile) string {
	if p.Spec.SecurityContext == nil || p.Spec.SecurityContext.TemplateRef == nil {
		return ""
	}
	return p.Spec.SecurityContext.TemplateRef.Name
}

// Validate returns what Kubernetes would refuse in the security contexts of a profile or of a template, whatever pod they are given to, in
// its own words. Path is where they are.
func Validate(c accounts.SecurityContexts, path *field.Path) field.ErrorList {
	errs := securitycontext.ValidatePodContext(c.Pod, path.Child("pod"))
	errs = append(errs, securitycontext.ValidateContainerContext(c.Container, path.Child("container"))...)
	return append(errs, securitycontext.ValidateWindowsOptions(c.Windows, path.Child("windows"))...)
}

// Enforces reports whether pods with something weaker are refused: by its mode, or as new pods with old values are.
func (p Profile) Enforces() bool {
	return p.Spec.SecurityContext != nil && (p.Spec.OnChange == accounts.OnChangeBlockNew || p.Spec.SecurityContext.Mode != accounts.ModeDefault && p.Spec.SecurityContext.Mode != "")
}

// HasContexts reports whether the profile has a security context, so that the operating system of its pods matters.
func (p Profile) HasContexts() bool {
	return p.Contexts.Pod != nil || p.Contexts.Container != nil || p.Contexts.Windows != nil
}

// needsOS reports whether a pod must have an operating system that it does not have: where the profile refuses something of Windows, a pod that
// counts as one of Linux must not run there.
func (p Profile) needsOS(pod Pod) bool {
	return p.Enforces() && p.Contexts.Windows != nil && pod.OS == "" && pod.Spec.OS == nil && pod.Ephemeral == nil
}

// HasWindowsOptions reports whether a pod has options that Kubernetes refuses in a pod of Linux.
func HasWindowsOptions(pod *corev1.Pod) bool {
	return pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.WindowsOptions != nil || slices.ContainsFunc(containersOf(pod, nil), func(c container) bool {
		return *c.context != nil && (*c.context).WindowsOptions != nil
	})
}

// Pod is a pod that a Profile decides about.
type Pod struct {
	*corev1.Pod
	// OS is the operating system that determines where it can run, as pods.OS returns it; empty if nothing does.
	OS target.OS
	// Ephemeral are the names of the ephemeral containers that are added to a pod which runs, and alone decided on. It is nil for a pod that
	// is created.
	Ephemeral []string
	// Tokens are the Secrets with tokens of the pod's own identities, which are always allowed.
	Tokens []string
}

// linux reports whether fields of Linux are filled in and compared: nodes run Linux unless something determines otherwise.
func (p Pod) linux() bool { return p.OS != target.Windows }

// windows reports whether fields of Windows are filled in.
func (p Pod) windows() bool { return p.OS == target.Windows }
