package pods

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/tokensecret"
)

const (
	volumePrefix = "workload-identity-"
	// filesPrefix is that of the annotations which carry files whose paths differ from those in the token's Secret.
	filesPrefix = "files.identity.credence.dev/"
)

// VolumeName is the name of the volume with an identity's token: the same in every pod.
func VolumeName(identity string) string {
	digest := sha256.Sum256([]byte(identity))
	return volumePrefix + hex.EncodeToString(digest[:])[:10]
}

// file is a file beside the token, which an annotation of the pod carries.
type file struct{ annotation, content string }

// volumeOf is the volume of a grant: the token of the Secret, which the kubelet waits for, and the files beside it: from the
// same Secret if the pod has the place that they are rendered for there, else from annotations of the pod. Every field that
// the API would set by default is set, so that the volume is found unchanged when the pod is looked at again.
func volumeOf(account string, g grant, standard bool) (corev1.Volume, []file) {
	secret := &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: tokensecret.NameFor(account, g.identity)},
		Items:                []corev1.KeyToPath{{Key: target.TokenFile, Path: target.TokenFile}},
		Optional:             new(false),
	}
	volume := corev1.Volume{Name: VolumeName(g.identity)}
	sources := []corev1.VolumeProjection{{Secret: secret}}
	var files []file
	var rendered corev1.DownwardAPIProjection
	for _, name := range g.injection.Mounts {
		if standard {
			secret.Items = append(secret.Items, corev1.KeyToPath{Key: name, Path: name})
			continue
		}
		f := file{annotation: filesPrefix + volume.Name + "." + name, content: contentOf(g.injection, name)}
		files = append(files, f)
		rendered.Items = append(rendered.Items, corev1.DownwardAPIVolumeFile{
			Path:     name,
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + f.annotation + "']"},
		})
	}
	if len(rendered.Items) > 0 {
		sources = append(sources, corev1.VolumeProjection{DownwardAPI: &rendered})
	}
	volume.Projected = &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode)}
	return volume, files
}

func contentOf(injection target.Injection, key string) string {
	i := slices.IndexFunc(injection.Keys, func(k target.Key) bool { return k.Name == key })
	if i < 0 {
		return ""
	}
	return injection.Keys[i].Content
}

func (p *patch) volumes(pod *corev1.Pod, grants []grant) *Denial {
	var missing []corev1.Volume
	for _, g := range grants {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == g.volume.Name })
		switch {
		case i < 0:
			missing = append(missing, g.volume)
		case !equality.Semantic.DeepEqual(withDefaults(pod.Spec.Volumes[i]), g.volume):
			return decision.Invalid(fmt.Sprintf("spec.volumes[%d] of the pod has the name %q, which is that of the volume for workload identity %q, but it is another volume: rename it, or remove it if it came with a copied pod",
				i, g.volume.Name, g.identity))
		}
	}
	extend(p, "/spec/volumes", pod.Spec.Volumes, missing)
	return nil
}

// withDefaults sets what the API sets where a field is left out.
func withDefaults(volume corev1.Volume) corev1.Volume {
	if volume.Projected == nil {
		return volume
	}
	volume = *volume.DeepCopy()
	if volume.Projected.DefaultMode == nil {
		volume.Projected.DefaultMode = new(corev1.ProjectedVolumeSourceDefaultMode)
	}
	for _, source := range volume.Projected.Sources {
		if source.Secret != nil && source.Secret.Optional == nil {
			source.Secret.Optional = new(false)
		}
		if source.DownwardAPI == nil {
			continue
		}
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef != nil && item.FieldRef.APIVersion == "" {
				item.FieldRef.APIVersion = "v1"
			}
		}
	}
	return volume
}

// Carries reports whether a pod has the volume of an identity of its service account.
func Carries(pod *corev1.Pod, account, identity string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.Name != VolumeName(identity) {
			return false
		}
		return ofDriver(v) && v.CSI.VolumeAttributes[v1alpha1.VolumeAttributeIdentity] == identity ||
			v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.Secret != nil && source.Secret.Name == tokensecret.NameFor(account, identity)
			})
	})
}

func (p *patch) files(pod *corev1.Pod, grants []grant) *Denial {
	missing := map[string]string{}
	for _, g := range grants {
		for _, f := range g.files {
			content, present := pod.Annotations[f.annotation]
			switch {
			case !present && pod.Annotations == nil:
				missing[f.annotation] = f.content
			case !present:
				p.add("/metadata/annotations/"+pointer(f.annotation), f.content)
			case content != f.content:
				return decision.Invalid(fmt.Sprintf("annotation %s of the pod is a file of workload identity %q, but has another content: remove the annotation, it is written when the pod is created", f.annotation, g.identity))
			}
		}
	}
	if len(missing) > 0 {
		p.add("/metadata/annotations", missing)
	}
	return nil
}
