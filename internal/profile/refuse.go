package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/target"
)

// Difference is a field of a pod that is not as its profile wants it. Has is empty if the pod leaves it open.
type Difference struct {
	Field, Has, Wants string
	// secret reports whether the field names a Secret.
	secret bool
}

// Refuse returns why a pod that Fill has filled in is refused, or nil.
func (p Profile) Refuse(pod Pod) *decision.Denial {
	if len(p.Faults) > 0 {
		return decision.Invalid(fmt.Sprintf("%s can not be applied, so that no pod of the account is admitted: %s. %s", p, p.Faults.ToAggregate(), p.whoMayChange(false)))
	}
	if denial := p.tooMany(pod); denial != nil {
		return denial
	}
	differences := p.Secrets(pod)
	if p.Enforces() {
		weaker := p.Weaker(pod)
		if p.needsOS(pod) {
			weaker = append(weaker, Difference{Field: pathOS, Wants: "linux or windows"})
		}
		differences = append(weaker, differences...)
	}
	var first *decision.Denial
	for _, d := range differences[:min(len(differences), maxReasons)] {
		denial := decision.Forbidden(p.worded(d)).At(d.Field)
		if first == nil {
			first = denial
		} else {
			first.Others = append(first.Others, denial)
		}
	}
	if len(differences) > 1 {
		first.Message += fmt.Sprintf(" (and %d more: %s)", len(differences)-1, otherFields(first.Others))
	}
	return first
}

// maxReasons is how many differences are worded.
const maxReasons = 20

// maxContainers is how many containers of all kinds a pod can have for a profile, which is compared with each.
const maxContainers = 500

func (p Profile) tooMany(pod Pod) *decision.Denial {
	n := len(pod.Spec.InitContainers) + len(pod.Spec.Containers) + len(pod.Spec.EphemeralContainers)
	if !p.Exists || n <= maxContainers {
		return nil
	}
	return decision.Invalid(fmt.Sprintf("the pod has %d containers, and %s is applied to pods with %d at most: make several pods of it", n, p, maxContainers))
}

// otherFields lists fields, the first few of many.
func otherFields(denials []*decision.Denial) string {
	const most = 5
	var fields []string
	for _, d := range denials[:min(most, len(denials))] {
		fields = append(fields, d.Field)
	}
	if len(denials) > most {
		fields = append(fields, "…")
	}
	return strings.Join(fields, ", ")
}

// String names the profile.
func (p Profile) String() string { return "ServiceAccountProfile " + p.Namespace + "/" + p.Name }

func (p Profile) worded(d Difference) string {
	switch {
	case d.secret && strings.HasPrefix(d.Field, pathPullSecrets):
		return fmt.Sprintf("%s: has Secret %q, and %s allows %s: take it off the pod or, if the pod has it of its service account, add it to secrets.imagePull of the profile. %s", d.Field, d.Has, p, d.Wants, p.whoMayChange(false))
	case d.secret:
		return fmt.Sprintf("%s: has Secret %q, and %s allows %s: take it off the pod. %s", d.Field, d.Has, p, d.Wants, p.whoMayChange(false))
	case d.Field == pathOS:
		return fmt.Sprintf("%s: has nothing, and %s wants %s, as it refuses options of Windows, and the pod has some: set it. %s", d.Field, p, d.Wants, p.whoMayChange(true))
	}
	return fmt.Sprintf("%s: has %s, and %s wants %s: leave the field out of a new pod, and it is filled in, or set it to that. %s", d.Field, cmp.Or(d.Has, "nothing"), p, d.Wants, p.whoMayChange(true))
}

// whoMayChange words who can change what a pod was compared with: of a security context that is of a template, the template.
func (p Profile) whoMayChange(context bool) string {
	if context && p.Template != "" {
		return fmt.Sprintf("The profile has this of SecurityContextTemplate %s, which a cluster admin changes with: kubectl edit securitycontexttemplate %s", p.Template, p.Template)
	}
	return fmt.Sprintf("The profile is changed by a user with ClusterRole admin in namespace %s with: kubectl edit serviceaccountprofile %s -n %s", p.Namespace, p.Name, p.Namespace)
}

// Secrets are the Secrets that a pod names and its profile does not allow.
func (p Profile) Secrets(pod Pod) []Difference {
	if p.Spec.Secrets == nil || p.Spec.Secrets.Allowed == nil {
		return nil
	}
	wants := "no Secret"
	if allowed := slices.Concat(p.Spec.Secrets.Allowed, p.Spec.Secrets.ImagePull); len(allowed) > 0 {
		wants = strings.Join(allowed, ", ")
	}
	var found []Difference
	for name, where := range References(pod.Pod, pod.Ephemeral, func(name string) bool {
		return !slices.Contains(p.Spec.Secrets.Allowed, name) && !slices.Contains(p.Spec.Secrets.ImagePull, name) && !slices.Contains(pod.Tokens, name)
	}) {
		found = append(found, Difference{where, name, wants, true})
	}
	return found
}

// Weaker are the fields of a pod's security contexts that are weaker than the profile's, whatever its mode. Those of containers are compared
// as these have them once their pod's are taken into account.
func (p Profile) Weaker(pod Pod) []Difference {
	var found []Difference
	known := map[Difference]bool{}
	add := func(d Difference) {
		if !known[d] {
			known[d] = true
			found = append(found, d)
		}
	}
	own := cmp.Or(pod.Spec.SecurityContext, &corev1.PodSecurityContext{})
	if c := p.Contexts.Pod; c != nil && pod.Ephemeral == nil && pod.linux() {
		for _, r := range podRules {
			if !inherited(r.name) && r.value(c) != nil && r.weaker(own, c) {
				add(Difference{Field: "spec.securityContext." + r.name, Has: shown(r.value(own)), Wants: shown(r.value(c))})
			}
		}
	}
	wants := securitycontext.Effective(p.Contexts.Pod, p.Contexts.Container)
	if wants.Privileged == nil && confines(wants) {
		wants.Privileged = new(false)
	}
	// A container of this kind is the node's root, whatever else confines it.
	windows := *cmp.Or(p.Contexts.Windows, &corev1.WindowsSecurityContextOptions{})
	windows.HostProcess = cmp.Or(windows.HostProcess, new(false))
	ofPod := securitycontext.Effective(own, nil)
	for _, c := range containersOf(pod.Pod, pod.Ephemeral) {
		ofContainer, has := securitycontext.Effective(nil, withAnnotated(pod.Pod, c)), securitycontext.Effective(own, withAnnotated(pod.Pod, c))
		at := fmt.Sprintf("spec.%s[%d].securityContext.", c.list, c.index)
		for _, r := range containerRules {
			if (pod.linux() || r.name == runAsNonRoot) && r.value(wants) != nil && r.weaker(has, wants) {
				add(Difference{Field: place(at, r.value(ofContainer) == nil && r.value(ofPod) != nil) + r.name, Has: shown(r.value(has)), Wants: shown(r.value(wants))})
			}
		}
		if pod.OS == target.Linux {
			continue
		}
		open := &corev1.WindowsSecurityContextOptions{}
		ofContainer.WindowsOptions, has.WindowsOptions = cmp.Or(ofContainer.WindowsOptions, open), cmp.Or(has.WindowsOptions, open)
		for _, r := range windowsRules {
			// Where nothing determines the operating system, the options of Windows are compared that the pod has.
			if r.value(&windows) != nil && (pod.windows() || r.value(has.WindowsOptions) != nil) && r.weaker(has.WindowsOptions, &windows) {
				ofPod := r.value(ofContainer.WindowsOptions) == nil && r.value(has.WindowsOptions) != nil
				add(Difference{Field: place(at, ofPod) + "windowsOptions." + r.name, Has: shown(r.value(has.WindowsOptions)), Wants: shown(r.value(&windows))})
			}
		}
	}
	return found
}

func place(ofContainer string, inherited bool) string {
	if inherited {
		return "spec.securityContext."
	}
	return ofContainer
}

// confines reports whether a context has what a privileged container is free of, whatever its own context has.
func confines(c *corev1.SecurityContext) bool {
	return c.Capabilities != nil || c.SeccompProfile != nil || c.AppArmorProfile != nil || c.SELinuxOptions != nil || c.AllowPrivilegeEscalation != nil || c.ProcMount != nil
}
