package securitycontext

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodContext returns what a kube-apiserver (v1.37) refuses in a pod's security context, whatever else the pod has, without its
// windowsOptions.
func ValidatePodContext(c *corev1.PodSecurityContext, at *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := validID(c.FSGroup, at.Child("fsGroup"), validation.IsValidGroupID)
	errs = append(errs, validID(c.RunAsUser, at.Child("runAsUser"), validation.IsValidUserID)...)
	errs = append(errs, validID(c.RunAsGroup, at.Child("runAsGroup"), validation.IsValidGroupID)...)
	for i := range c.SupplementalGroups {
		errs = append(errs, validID(&c.SupplementalGroups[i], at.Child("supplementalGroups").Index(i), validation.IsValidGroupID)...)
	}
	errs = append(errs, validateSysctls(c.Sysctls, at.Child("sysctls"))...)
	errs = append(errs, oneOf(c.FSGroupChangePolicy, at.Child("fsGroupChangePolicy"), corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(c.AppArmorProfile, at.Child("appArmorProfile"))...)
	errs = append(errs, oneOf(c.SupplementalGroupsPolicy, at.Child("supplementalGroupsPolicy"), corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	return append(errs, oneOf(c.SELinuxChangePolicy, at.Child("seLinuxChangePolicy"), corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)...)
}

// ValidateContainerContext returns what a kube-apiserver refuses in a container's security context, whatever else its pod has, without its
// windowsOptions.
func ValidateContainerContext(c *corev1.SecurityContext, at *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := validID(c.RunAsUser, at.Child("runAsUser"), validation.IsValidUserID)
	errs = append(errs, validID(c.RunAsGroup, at.Child("runAsGroup"), validation.IsValidGroupID)...)
	errs = append(errs, oneOf(c.ProcMount, at.Child("procMount"), corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, at.Child("seccompProfile"))...)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation {
		if c.Privileged != nil && *c.Privileged {
			errs = append(errs, field.Invalid(at, c, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if AddsSysAdmin(c) {
			errs = append(errs, field.Invalid(at, c, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	return append(errs, validateAppArmor(c.AppArmorProfile, at.Child("appArmorProfile"))...)
}

// AddsSysAdmin reports whether a container adds the capability which, as Kubernetes spells it, escalates privileges.
func AddsSysAdmin(c *corev1.SecurityContext) bool {
	return c.Capabilities != nil && slices.Contains(c.Capabilities.Add, "CAP_SYS_ADMIN")
}

func validID(id *int64, at *field.Path, faults func(int64) []string) (errs field.ErrorList) {
	if id == nil {
		return nil
	}
	for _, message := range faults(*id) {
		errs = append(errs, field.Invalid(at, *id, message))
	}
	return errs
}

func oneOf[T ~string](value *T, at *field.Path, supported ...T) field.ErrorList {
	if value == nil || slices.Contains(supported, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, *value, supported)}
}

func validateSeccomp(p *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	if p.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "type is required when seccompProfile is set"))
	} else {
		errs = oneOf(&p.Type, at.Child("type"), corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	}
	file := at.Child("localhostProfile")
	switch {
	case p.Type != corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(file, p, "can only be set when seccomp type is Localhost"))
	case p.Type != corev1.SeccompProfileTypeLocalhost:
	case p.LocalhostProfile == nil:
		errs = append(errs, field.Required(file, "must be set when seccomp type is Localhost"))
	default:
		if path.IsAbs(*p.LocalhostProfile) {
			errs = append(errs, field.Invalid(file, *p.LocalhostProfile, "must be a relative path"))
		}
		if slices.Contains(strings.Split(*p.LocalhostProfile, "/"), "..") {
			errs = append(errs, field.Invalid(file, *p.LocalhostProfile, "must not contain '..'"))
		}
	}
	return errs
}

// maxAppArmor is the longest name of an AppArmor profile.
const maxAppArmor = 4095

func validateAppArmor(p *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	name := at.Child("localhostProfile")
	switch {
	case p.Type == "":
		return field.ErrorList{field.Required(at.Child("type"), "type is required when appArmorProfile is set")}
	case p.Type != corev1.AppArmorProfileTypeLocalhost:
		errs := oneOf(&p.Type, at.Child("type"), corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
		if errs == nil && p.LocalhostProfile != nil {
			errs = field.ErrorList{field.Invalid(name, p.LocalhostProfile, "can only be set when AppArmor type is Localhost")}
		}
		return errs
	case p.LocalhostProfile == nil:
		return field.ErrorList{field.Required(name, "must be set when AppArmor type is Localhost")}
	}
	var errs field.ErrorList
	if strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile {
		errs = append(errs, field.Invalid(name, *p.LocalhostProfile, "must not be padded with whitespace"))
	} else if *p.LocalhostProfile == "" {
		errs = append(errs, field.Required(name, "must be set when AppArmor type is Localhost"))
	}
	if len(*p.LocalhostProfile) > maxAppArmor {
		errs = append(errs, field.TooLong(name, "", maxAppArmor))
	}
	return errs
}

const maxSysctl = 253

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func validateSysctls(sysctls []corev1.Sysctl, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]bool, len(sysctls))
	for i, s := range sysctls {
		name := at.Index(i).Child("name")
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(name, ""))
		case len(s.Name) > maxSysctl || !sysctlName.MatchString(s.Name):
			errs = append(errs, field.Invalid(name, s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctl, sysctlName)))
		case seen[s.Name]:
			errs = append(errs, field.Duplicate(name, s.Name))
		}
		seen[s.Name] = true
	}
	return errs
}
