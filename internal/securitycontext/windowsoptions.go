package securitycontext

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The largest gmsaCredentialSpec, in bytes. Real ones have about a thousand.
const maxCredentialSpec = 64 << 10

// ValidateWindowsOptions looks at one windowsOptions by itself. An empty string is not an absent one: all three must not be
// empty. That a credential spec is JSON is not checked, as Kubernetes does not.
//
// Wrong values are pointers, as Kubernetes' are: an error prints those as JSON ("\u003c" for "<"), and strings otherwise.
func ValidateWindowsOptions(options *corev1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if name := options.GMSACredentialSpecName; name != nil {
		for _, message := range validation.IsDNS1123Subdomain(*name) {
			errs = append(errs, field.Invalid(path.Child("gmsaCredentialSpecName"), new(*name), message))
		}
	}
	if spec := options.GMSACredentialSpec; spec != nil {
		at := path.Child("gmsaCredentialSpec")
		switch {
		case *spec == "":
			errs = append(errs, field.Invalid(at, new(*spec), "gmsaCredentialSpec cannot be an empty string"))
		case len(*spec) > maxCredentialSpec:
			errs = append(errs, field.Invalid(at, new(*spec), "gmsaCredentialSpec size must be under 64 KiB"))
		}
	}
	if name := options.RunAsUserName; name != nil {
		for _, message := range userNameFaults(*name) {
			errs = append(errs, field.Invalid(path.Child("runAsUserName"), new(*name), message))
		}
	}
	return errs
}
