package pods

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
)

// mounted reports whether the container has the mount of a grant already. It refuses mounts that conflict with it: at the same
// path, at one inside it, over the folder of all identities, or at any parent that is read-only, in which no folder for ours
// could be made. A writable parent is harmless: runtimes mount the shorter path first.
func mounted(pod *corev1.Pod, c container, g grant) (bool, *Denial) {
	ours := canonical(g.place.Dir, g.place.OS)
	present := false
	for _, m := range c.mounts {
		theirs := canonical(m.MountPath, g.place.OS)
		if theirs == ours && m.Name == g.volume.Name && plain(m) {
			present = true
			continue
		}
		if theirs == ours || inside(theirs, ours) || theirs == path.Dir(ours) || inside(ours, theirs) && readOnly(pod, m) {
			return false, taken(c, g, fmt.Sprintf("mounts volume %q at %s", m.Name, m.MountPath))
		}
	}
	for _, d := range c.devices {
		if theirs := canonical(d.DevicePath, g.place.OS); theirs == ours || inside(theirs, ours) || inside(ours, theirs) {
			return false, taken(c, g, fmt.Sprintf("has device %q at %s", d.Name, d.DevicePath))
		}
	}
	return present, nil
}

func taken(c container, g grant, what string) *Denial {
	return decision.Invalid(fmt.Sprintf("container %q of the pod %s, which is in the way of workload identity %q at %s: mount it elsewhere, or give the identities another folder with annotation %s of the pod",
		c.name, what, g.identity, g.place.Dir, v1alpha1.AnnotationMountPath))
}

// plain reports whether a mount is the one that would be added: the whole volume, read-only.
func plain(m corev1.VolumeMount) bool {
	return m.ReadOnly && m.SubPath == "" && m.SubPathExpr == "" && m.RecursiveReadOnly == nil &&
		(m.MountPropagation == nil || *m.MountPropagation == corev1.MountPropagationNone)
}

// readOnly reports whether nothing can be created in a mount: by the mount itself, or because its volume's kind is always read-only.
func readOnly(pod *corev1.Pod, m corev1.VolumeMount) bool {
	return m.ReadOnly || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == m.Name && (v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.Projected != nil || v.Image != nil || ofDriver(v))
	})
}

// inside reports whether a canonical path lies below another.
func inside(inner, outer string) bool {
	return strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/") && inner != outer
}

// canonical is the one spelling of a path in a container. On Linux /var/run is a link to /run in nearly every image, so that
// both mean the same place. On Windows case and kind of slash make no difference, and no drive means C.
func canonical(mountPath string, os target.OS) string {
	if os == target.Windows {
		mountPath = strings.ToLower(strings.ReplaceAll(mountPath, `\`, "/"))
		drive := "c:"
		if len(mountPath) >= 2 && mountPath[1] == ':' {
			drive, mountPath = mountPath[:2], mountPath[2:]
		}
		return "/" + drive + path.Clean("/"+mountPath)
	}
	cleaned := path.Clean("/" + mountPath)
	if cleaned == "/var/run" || strings.HasPrefix(cleaned, "/var/run/") {
		return strings.TrimPrefix(cleaned, "/var")
	}
	return cleaned
}
