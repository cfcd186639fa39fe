package profile

import (
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// References yields each Secret that a pod names, and the field that does, for the names that wanted reports true for. Of a pod that runs,
// only the new ephemeral containers are looked at: the rest was, and can't be changed.
func References(pod *corev1.Pod, ephemeral []string, wanted func(name string) bool) iter.Seq2[string, string] {
	return func(yield func(name, where string) bool) {
		going := true
		see := func(name, format string, args ...any) {
			if going && name != "" && wanted(name) {
				going = yield(name, fmt.Sprintf(format, args...))
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if c := &pod.Spec.EphemeralContainers[i]; ephemeral == nil || slices.Contains(ephemeral, c.Name) {
				environment(c.Env, c.EnvFrom, "spec.ephemeralContainers", i, see)
			}
		}
		if ephemeral != nil {
			return
		}
		for i := range pod.Spec.InitContainers {
			environment(pod.Spec.InitContainers[i].Env, pod.Spec.InitContainers[i].EnvFrom, "spec.initContainers", i, see)
		}
		for i := range pod.Spec.Containers {
			environment(pod.Spec.Containers[i].Env, pod.Spec.Containers[i].EnvFrom, "spec.containers", i, see)
		}
		for i, reference := range pod.Spec.ImagePullSecrets {
			see(reference.Name, "spec.imagePullSecrets[%d]", i)
		}
		for i := range pod.Spec.Volumes {
			volume(&pod.Spec.Volumes[i].VolumeSource, i, see)
		}
	}
}

func environment(env []corev1.EnvVar, from []corev1.EnvFromSource, list string, i int, see func(name, format string, args ...any)) {
	for j, v := range env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			see(v.ValueFrom.SecretKeyRef.Name, "%s[%d].env[%d].valueFrom.secretKeyRef", list, i, j)
		}
	}
	for j, source := range from {
		if source.SecretRef != nil {
			see(source.SecretRef.Name, "%s[%d].envFrom[%d].secretRef", list, i, j)
		}
	}
}

func volume(v *corev1.VolumeSource, i int, see func(name, format string, args ...any)) {
	if v.Secret != nil {
		see(v.Secret.SecretName, "spec.volumes[%d].secret", i)
	}
	if v.Projected != nil {
		for j, source := range v.Projected.Sources {
			if source.Secret != nil {
				see(source.Secret.Name, "spec.volumes[%d].projected.sources[%d].secret", i, j)
			}
		}
	}
	if v.AzureFile != nil {
		see(v.AzureFile.SecretName, "spec.volumes[%d].azureFile", i)
	}
	if v.CephFS != nil && v.CephFS.SecretRef != nil {
		see(v.CephFS.SecretRef.Name, "spec.volumes[%d].cephfs.secretRef", i)
	}
	if v.Cinder != nil && v.Cinder.SecretRef != nil {
		see(v.Cinder.SecretRef.Name, "spec.volumes[%d].cinder.secretRef", i)
	}
	if v.FlexVolume != nil && v.FlexVolume.SecretRef != nil {
		see(v.FlexVolume.SecretRef.Name, "spec.volumes[%d].flexVolume.secretRef", i)
	}
	if v.ISCSI != nil && v.ISCSI.SecretRef != nil {
		see(v.ISCSI.SecretRef.Name, "spec.volumes[%d].iscsi.secretRef", i)
	}
	if v.RBD != nil && v.RBD.SecretRef != nil {
		see(v.RBD.SecretRef.Name, "spec.volumes[%d].rbd.secretRef", i)
	}
	if v.ScaleIO != nil && v.ScaleIO.SecretRef != nil {
		see(v.ScaleIO.SecretRef.Name, "spec.volumes[%d].scaleIO.secretRef", i)
	}
	if v.StorageOS != nil && v.StorageOS.SecretRef != nil {
		see(v.StorageOS.SecretRef.Name, "spec.volumes[%d].storageos.secretRef", i)
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		see(v.CSI.NodePublishSecretRef.Name, "spec.volumes[%d].csi.nodePublishSecretRef", i)
	}
}
