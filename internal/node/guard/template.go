package guard

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/securitycontext/cri"
)

// Template is what containers of pods that do not come from the API are tightened to.
type Template struct {
	// Name is the one of its object, for messages.
	Name string
	// container is what each container has at least.
	container *corev1.SecurityContext
	// strictGroups takes away groups that an image gives its users.
	strictGroups bool
	// devices allows devices that the kubelet gives a pod.
	devices bool
}

// The templates that are ready.
const (
	Restricted = "restricted"
	Baseline   = "baseline"
)

//go:embed templates/*.yaml
var ready embed.FS

// ReadTemplate reads a template that is ready, or one of a file: a SecurityContextTemplate in YAML or JSON.
func ReadTemplate(nameOrFile string) (Template, error) {
	if nameOrFile == Restricted || nameOrFile == Baseline {
		data, err := ready.ReadFile("templates/" + nameOrFile + ".yaml")
		if err != nil {
			return Template{}, err
		}
		return parseTemplate(data, nameOrFile == Baseline)
	}
	data, err := readFile(nameOrFile)
	if err != nil {
		return Template{}, err
	}
	template, err := parseTemplate(data, false)
	if err != nil {
		return Template{}, fmt.Errorf("%s: %w", nameOrFile, err)
	}
	return template, nil
}

func parseTemplate(data []byte, devices bool) (Template, error) {
	var object accounts.SecurityContextTemplate
	if err := yaml.UnmarshalStrict(data, &object); err != nil {
		return Template{}, err
	}
	if version := accounts.SchemeGroupVersion.String(); object.APIVersion != version || object.Kind != "SecurityContextTemplate" {
		return Template{}, fmt.Errorf("apiVersion and kind must be %s and SecurityContextTemplate", version)
	}
	if errs := append(profile.Validate(object.Spec, field.NewPath("spec")), unheld(object.Spec)...); len(errs) > 0 {
		return Template{}, errs.ToAggregate()
	}
	template := Template{Name: object.Name, container: securitycontext.Effective(object.Spec.Pod, object.Spec.Container), devices: devices}
	if p := object.Spec.Pod; p != nil && p.SupplementalGroupsPolicy != nil {
		template.strictGroups = *p.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict
	}
	// The number is what holds it.
	template.container.RunAsNonRoot = nil
	return template, nil
}

// unheld are the fields of a template that could not be held: a runtime never sees them.
func unheld(c accounts.SecurityContexts) field.ErrorList {
	var errs field.ErrorList
	spec, pod := field.NewPath("spec"), corev1.PodSecurityContext{}
	if c.Pod != nil {
		pod = *c.Pod
	}
	for name, set := range map[string]bool{
		"fsGroup":             pod.FSGroup != nil,
		"fsGroupChangePolicy": pod.FSGroupChangePolicy != nil,
		"seLinuxChangePolicy": pod.SELinuxChangePolicy != nil,
		"supplementalGroups":  len(pod.SupplementalGroups) > 0,
		"sysctls":             len(pod.Sysctls) > 0,
	} {
		if set {
			errs = append(errs, field.Forbidden(spec.Child("pod", name), "it can't be held at the runtime: take it off"))
		}
	}
	if c.Windows != nil {
		errs = append(errs, field.Forbidden(spec.Child("windows"), "it can't be held at the runtime: take it off"))
	}
	effective := securitycontext.Effective(c.Pod, c.Container)
	for name, id := range map[string]*int64{"runAsUser": effective.RunAsUser, "runAsGroup": effective.RunAsGroup} {
		if id != nil && *id == 0 {
			errs = append(errs, field.Invalid(spec.Child("container", name), *id, "must not be root's"))
		}
	}
	if nonRoot := effective.RunAsNonRoot; effective.RunAsUser == nil && nonRoot != nil && *nonRoot {
		errs = append(errs, field.Required(spec.Child("container", "runAsUser"), "a number holds runAsNonRoot at the runtime: give one"))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// tighten changes a message wherever it is weaker than the template, and returns the names of the fields.
func (t Template) tighten(m *runtime.LinuxContainerSecurityContext, node cri.Node) ([]string, error) {
	has, wants := cri.LinuxContext(m, node), t.container.DeepCopy()
	// Of users other than root none is weaker than another.
	if isNotRoot(has.RunAsUser) {
		wants.RunAsUser = nil
	}
	if isNotRoot(has.RunAsGroup) {
		wants.RunAsGroup = nil
	}
	// A type can free a container of SELinux; a level can't.
	if o := has.SELinuxOptions; o != nil && wants.SELinuxOptions == nil {
		wants.SELinuxOptions = &corev1.SELinuxOptions{Level: o.Level}
	}
	if p := wants.SeccompProfile; p != nil && isOfNode(has.SeccompProfile.Type, p.Type) {
		has.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}
	if p := wants.AppArmorProfile; p != nil && isOfNode(has.AppArmorProfile.Type, p.Type) {
		has.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	changes, weaker := profile.Tighter(has, wants)
	made, err := cri.LinuxContainer(changes, node)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, d := range weaker {
		if !cri.SetLinux(m, made, d.Field) {
			return nil, errors.New("no message to a runtime has the field " + d.Field)
		}
		changed = append(changed, d.Field)
	}
	roots := func(group int64) bool { return !isNotRoot(&group) }
	if t.container.RunAsGroup != nil && slices.ContainsFunc(m.GetSupplementalGroups(), roots) {
		m.SupplementalGroups = slices.DeleteFunc(m.GetSupplementalGroups(), roots)
		changed = append(changed, "supplementalGroups")
	}
	if t.strictGroups && m.GetSupplementalGroupsPolicy() != runtime.SupplementalGroupsPolicy_Strict {
		m.SupplementalGroupsPolicy = runtime.SupplementalGroupsPolicy_Strict
		changed = append(changed, "supplementalGroupsPolicy")
	}
	return changed, nil
}

// isOfNode reports whether a profile is one of the node where the template has the runtime's: it may allow everything, and is as good as none.
func isOfNode[Type ~string](has, wants Type) bool {
	return has == Type(corev1.SeccompProfileTypeLocalhost) && wants == Type(corev1.SeccompProfileTypeRuntimeDefault)
}

// isNotRoot reports whether a number is that of a user or group other than root. What Kubernetes does not take for one may be cut to another.
func isNotRoot(id *int64) bool { return id != nil && *id > 0 && *id <= math.MaxInt32 }

// tightenSandbox is tighten for what a sandbox has of it. No code of the pod runs in it.
func (t Template) tightenSandbox(s *runtime.LinuxSandboxSecurityContext, node cri.Node) ([]string, error) {
	m := &runtime.LinuxContainerSecurityContext{
		Privileged: s.GetPrivileged(), SelinuxOptions: s.GetSelinuxOptions(), RunAsUser: s.GetRunAsUser(), RunAsGroup: s.GetRunAsGroup(),
		ReadonlyRootfs: s.GetReadonlyRootfs(), SupplementalGroups: s.GetSupplementalGroups(), SupplementalGroupsPolicy: s.GetSupplementalGroupsPolicy(),
		Seccomp: s.GetSeccomp(), Apparmor: s.GetApparmor(),
	}
	fields, err := t.tighten(m, node)
	if err != nil {
		return nil, err
	}
	s.Privileged, s.SelinuxOptions, s.RunAsUser, s.RunAsGroup = m.GetPrivileged(), m.GetSelinuxOptions(), m.GetRunAsUser(), m.GetRunAsGroup()
	s.ReadonlyRootfs, s.SupplementalGroups, s.SupplementalGroupsPolicy = m.GetReadonlyRootfs(), m.GetSupplementalGroups(), m.GetSupplementalGroupsPolicy()
	s.Seccomp, s.Apparmor = m.GetSeccomp(), m.GetApparmor()
	return fields, nil
}
