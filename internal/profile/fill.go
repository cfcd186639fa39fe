package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/securitycontext"
)

// Filled is a pod with what its profile fills in.
type Filled struct {
	// Pod is a copy, or the pod itself if nothing is filled in.
	Pod *corev1.Pod
	// Patch makes the pod that one.
	Patch  []decision.Operation
	Fields []Field
}

// Field is a field of a pod, and its value as JSON. Containers in its path are named: spec.containers[app].securityContext.runAsUser.
type Field struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Fill fills in what a pod leaves open. Of the security context this is, field by field, what neither a container nor its pod has; a structure
// is one field, windowsOptions are not. A pod that Fill has filled in is left as it is; containers that were added to it since are filled in.
func (p Profile) Fill(pod Pod) Filled {
	if !p.Exists || len(p.Faults) > 0 || p.tooMany(pod) != nil {
		return Filled{Pod: pod.Pod}
	}
	f := &filler{Filled: Filled{Pod: pod.DeepCopy()}, has: map[string]bool{}}
	for _, path := range filledIn(pod.Pod) {
		f.has[path] = true
	}
	if p.HasContexts() {
		if pod.Ephemeral == nil {
			if p.needsOS(pod) && !HasWindowsOptions(pod.Pod) {
				f.Pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
				f.add("/spec/os", f.Pod.Spec.OS)
				f.filled(pathOS, string(corev1.Linux))
			}
			f.podContext(p.Contexts, pod)
		}
		f.containerContexts(p.Contexts, pod)
	}
	if pod.Ephemeral == nil {
		f.token(p.Spec.AutomountToken)
		f.pullSecrets(p.Spec.Secrets)
	}
	if len(f.Fields) == 0 {
		return Filled{Pod: pod.Pod}
	}
	if pod.Ephemeral == nil { // an update of ephemeral containers changes nothing else
		f.note()
	}
	return f.Filled
}

// filler changes its pod, and writes down how.
type filler struct {
	Filled
	// has are the paths of all fields that were filled in, by this pass or by an earlier one.
	has map[string]bool
}

func (f *filler) add(pointer string, value any) {
	f.Patch = append(f.Patch, decision.Operation{Op: "add", Path: pointer, Value: value})
}

func (f *filler) filled(path, value string) {
	f.Fields = append(f.Fields, Field{path, value})
	f.has[path] = true
}

// context is where a security context is: its JSON pointer, and its path for people.
type context struct{ pointer, path string }

func (c context) child(name string) context {
	return context{c.pointer + "/" + name, c.path + "." + name}
}

// fill fills in the fields of a context for which open reports true.
func fill[C any](f *filler, at context, rules []rule[C], into **C, from *C, open func(rule[C]) bool) {
	missing := *into == nil
	whole := new(C)
	if !missing {
		whole = *into
	}
	some := false
	for _, r := range rules {
		if from == nil || r.value(from) == nil || r.value(whole) != nil || !open(r) {
			continue
		}
		r.fill(whole, from)
		some = true
		f.filled(at.path+"."+r.name, shown(r.value(whole)))
		if !missing {
			f.add(at.pointer+"/"+r.name, r.value(whole))
		}
	}
	if some && missing {
		*into = whole
		f.add(at.pointer, new(*whole))
	}
}

func (f *filler) podContext(c accounts.SecurityContexts, pod Pod) {
	at := context{"/spec/securityContext", "spec.securityContext"}
	fill(f, at, podRules, &f.Pod.Spec.SecurityContext, c.Pod, func(r rule[corev1.PodSecurityContext]) bool {
		return pod.linux() || r.name == runAsNonRoot
	})
	if !pod.windows() || c.Windows == nil {
		return
	}
	if f.Pod.Spec.SecurityContext == nil {
		f.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		f.add(at.pointer, &corev1.PodSecurityContext{})
	}
	into := &f.Pod.Spec.SecurityContext.WindowsOptions
	fill(f, at.child("windowsOptions"), windowsRules, into, mergedWindows(*into, c.Windows), f.windowsOpen)
}

// mergedWindows are options with those of the profile that they leave open: of a credential spec, name and contents are one.
func mergedWindows(own, wants *corev1.WindowsSecurityContextOptions) *corev1.WindowsSecurityContextOptions {
	return securitycontext.Effective(&corev1.PodSecurityContext{WindowsOptions: wants}, &corev1.SecurityContext{WindowsOptions: own}).WindowsOptions
}

// windowsOpen reports whether a pod leaves a field of windowsOptions open. hostProcess must be the same for all containers.
func (f *filler) windowsOpen(r rule[corev1.WindowsSecurityContextOptions]) bool {
	return r.name != hostProcess || !slices.ContainsFunc(containersOf(f.Pod, nil), func(c container) bool {
		o := securitycontext.Effective(f.Pod.Spec.SecurityContext, *c.context).WindowsOptions
		return o != nil && o.HostProcess != nil
	})
}

func (f *filler) containerContexts(c accounts.SecurityContexts, pod Pod) {
	ofPod, ours, wants := securitycontext.Effective(f.Pod.Spec.SecurityContext, nil), securitycontext.Effective(c.Pod, nil), securitycontext.Effective(c.Pod, c.Container)
	for _, container := range containersOf(f.Pod, pod.Ephemeral) {
		at, own := container.at(), *container.context
		fill(f, at, containerRules, container.context, wants, func(r rule[corev1.SecurityContext]) bool {
			said, wanted := r.value(ofPod), r.value(wants)
			return (pod.linux() || r.name == runAsNonRoot) &&
				(said == nil || f.has["spec.securityContext."+r.name] && equality.Semantic.DeepEqual(said, r.value(ours)) && !equality.Semantic.DeepEqual(said, wanted)) &&
				!(r.name == allowPrivilegeEscalation && escalates(own)) && !(r.name == appArmorProfile && annotated(f.Pod, container.name) != nil)
		})
		if pod.Ephemeral == nil || !pod.windows() || c.Windows == nil {
			continue
		}
		effective := securitycontext.Effective(f.Pod.Spec.SecurityContext, *container.context).WindowsOptions
		if *container.context == nil {
			*container.context = &corev1.SecurityContext{}
			f.add(at.pointer, &corev1.SecurityContext{})
		}
		fill(f, at.child("windowsOptions"), windowsRules, &(*container.context).WindowsOptions, mergedWindows(effective, c.Windows), func(r rule[corev1.WindowsSecurityContextOptions]) bool {
			return r.name != hostProcess && (effective == nil || r.value(effective) == nil) // hostProcess is the pod's, or left out
		})
	}
}

// escalates reports whether a container has what Kubernetes refuses beside allowPrivilegeEscalation false, and so leaves that not open.
func escalates(c *corev1.SecurityContext) bool {
	return c != nil && (c.Privileged != nil && *c.Privileged || securitycontext.AddsSysAdmin(c))
}

// container is a container of any kind.
type container struct {
	list, name string
	index      int
	context    **corev1.SecurityContext
}

func (c container) at() context {
	return context{"/spec/" + c.list + "/" + strconv.Itoa(c.index) + "/securityContext", fmt.Sprintf("spec.%s[%s].securityContext", c.list, c.name)}
}

// containersOf are the containers of a pod; if ephemeral is not nil, the ephemeral ones of these names.
func containersOf(pod *corev1.Pod, ephemeral []string) []container {
	var all []container
	if ephemeral == nil {
		for i := range pod.Spec.InitContainers {
			all = append(all, container{"initContainers", pod.Spec.InitContainers[i].Name, i, &pod.Spec.InitContainers[i].SecurityContext})
		}
		for i := range pod.Spec.Containers {
			all = append(all, container{"containers", pod.Spec.Containers[i].Name, i, &pod.Spec.Containers[i].SecurityContext})
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; ephemeral == nil || slices.Contains(ephemeral, c.Name) {
			all = append(all, container{"ephemeralContainers", c.Name, i, &c.SecurityContext})
		}
	}
	return all
}

const (
	pathAutomount   = "spec.automountServiceAccountToken"
	pathPullSecrets = "spec.imagePullSecrets"
	pathOS          = "spec.os.name"
)

// token decides whether a pod gets a token of its account. The API server has added it already where the pod and the account leave it open.
func (f *filler) token(automount *bool) {
	if automount == nil || f.Pod.Spec.AutomountServiceAccountToken != nil {
		return
	}
	f.Pod.Spec.AutomountServiceAccountToken = new(*automount)
	f.add("/spec/automountServiceAccountToken", *automount)
	f.filled(pathAutomount, shown(*automount))
	if *automount {
		return
	}
	added := map[string]bool{}
	f.Pod.Spec.Volumes = removed(f, "/spec/volumes", f.Pod.Spec.Volumes, func(v corev1.Volume) bool {
		added[v.Name] = automounted(v)
		return added[v.Name]
	})
	mounted := func(m corev1.VolumeMount) bool { return added[m.Name] }
	for i := range f.Pod.Spec.InitContainers {
		c := &f.Pod.Spec.InitContainers[i]
		c.VolumeMounts = removed(f, fmt.Sprintf("/spec/initContainers/%d/volumeMounts", i), c.VolumeMounts, mounted)
	}
	for i := range f.Pod.Spec.Containers {
		c := &f.Pod.Spec.Containers[i]
		c.VolumeMounts = removed(f, fmt.Sprintf("/spec/containers/%d/volumeMounts", i), c.VolumeMounts, mounted)
	}
}

// automounted reports whether a volume is the one that the API server adds.
func automounted(v corev1.Volume) bool {
	return strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil &&
		slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
}

// removed takes elements off a list, the last one first, so that the places of the others stay right. The list is never nil after that, as
// its JSON has it still.
func removed[T any](f *filler, pointer string, list []T, drop func(T) bool) []T {
	for i := len(list) - 1; i >= 0; i-- {
		if drop(list[i]) {
			f.Patch = append(f.Patch, decision.Operation{Op: "remove", Path: pointer + "/" + strconv.Itoa(i)})
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

func (f *filler) pullSecrets(secrets *accounts.ProfileSecrets) {
	if secrets == nil || len(secrets.ImagePull) == 0 || len(f.Pod.Spec.ImagePullSecrets) > 0 {
		return
	}
	for _, name := range secrets.ImagePull {
		f.Pod.Spec.ImagePullSecrets = append(f.Pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	f.add("/spec/imagePullSecrets", f.Pod.Spec.ImagePullSecrets)
	f.filled(pathPullSecrets, strings.Join(secrets.ImagePull, ", "))
}
