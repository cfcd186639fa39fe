package pods

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Requested returns the pod of a request as its author wrote it: a copy without what inject and its profile have added to a stored pod, so that
// it can be decided on again. Variables are not marked as added: one counts as added if it leads into a mounted folder of an
// identity, or if an identity of the account sets one of its name and it stands last, or in a row with one that was added.
func Requested(r Request) *corev1.Pod {
	pod := profile.Requested(r.Pod).DeepCopy()
	added := map[string]bool{}
	pod.Spec.Volumes = without(pod.Spec.Volumes, func(v corev1.Volume) bool {
		added[v.Name] = carriesToken(v)
		return added[v.Name]
	})
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, filesPrefix) })
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	pod.Spec.SchedulingGates = without(pod.Spec.SchedulingGates, isGate)
	order := variableOrder(r)
	strip := func(mounts []corev1.VolumeMount, env []corev1.EnvVar) ([]corev1.VolumeMount, []corev1.EnvVar) {
		var folders []string
		mounts = without(mounts, func(m corev1.VolumeMount) bool {
			if added[m.Name] {
				folders = append(folders, m.MountPath)
			}
			return added[m.Name]
		})
		if len(folders) == 0 {
			return mounts, env
		}
		return mounts, withoutAdded(env, order, folders)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		c.VolumeMounts, c.Env = strip(c.VolumeMounts, c.Env)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.VolumeMounts, c.Env = strip(c.VolumeMounts, c.Env)
	}
	// They are added to a pod that runs.
	pod.Spec.EphemeralContainers = nil
	return pod
}

// without deletes elements. An empty list becomes nil, as its JSON has no such member.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(list, drop); len(list) == 0 {
		return nil
	}
	return list
}

// carriesToken reports whether a volume is one that volumeOf or csiVolumeOf makes, of whichever service account and identity.
func carriesToken(v corev1.Volume) bool {
	return strings.HasPrefix(v.Name, volumePrefix) && (ofDriver(v) || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(source corev1.VolumeProjection) bool {
		return source.Secret != nil && strings.HasPrefix(source.Secret.Name, tokensecret.NamePrefix)
	}))
}

// variableOrder is the place of each variable in what the identities of the account set, in the order in which it is added.
func variableOrder(r Request) map[string]int {
	order := map[string]int{}
	for _, identity := range r.Account.Identities {
		config, problems := r.Adapters(identity.Type).Parse(identity.ProviderConfig, nil)
		if len(problems) > 0 {
			continue
		}
		for _, v := range config.Injection(target.PodPlace(target.Linux, target.DefaultMountPath, identity.Name)).Env {
			order[v.Name] = len(order)
		}
	}
	return order
}

// withoutAdded takes out the runs of variables, in the order in which they are added, that have one which leads into a folder,
// or that stand last.
func withoutAdded(env []corev1.EnvVar, order map[string]int, folders []string) []corev1.EnvVar {
	var kept []corev1.EnvVar
	for start := 0; start < len(env); {
		end, last, leads := start, -1, false
		for ; end < len(env); end++ {
			into := leadsInto(env[end], folders)
			place, known := order[env[end].Name]
			if !into && (!known || env[end].ValueFrom != nil) || known && place <= last {
				break
			}
			last, leads = max(place, last), leads || into
		}
		if end == start {
			end++
			kept = append(kept, env[start])
		} else if !leads && end < len(env) {
			kept = append(kept, env[start:end]...)
		}
		start = end
	}
	return kept
}

func leadsInto(v corev1.EnvVar, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return strings.HasPrefix(v.Value, folder+"/") || strings.HasPrefix(v.Value, folder+`\`)
	})
}
