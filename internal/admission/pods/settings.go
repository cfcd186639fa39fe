package pods

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/wording"
)

const (
	maxMountPath = 512
	maxSkipped   = 256
	// annotationPrefix is that of the annotations by which people choose.
	annotationPrefix = "identity.credence.dev/"
)

// settings are what the pod's annotations choose.
type settings struct {
	os        target.OS
	mountPath string // no slash at its end
	skip      []string
}

// standard reports whether files with paths in them are the same as those in the token's Secret.
func (s settings) standard() bool {
	return s.os == target.Linux && s.mountPath == target.DefaultMountPath
}

func (s settings) without(containers []container) []container {
	return slices.DeleteFunc(containers, func(c container) bool { return slices.Contains(s.skip, c.name) })
}

func settingsOf(r Request) (settings, *Denial) {
	s := settings{os: osOf(r), mountPath: target.DefaultMountPath}
	if text, present := r.Pod.Annotations[v1alpha1.AnnotationMountPath]; present {
		mountPath, problem := ParseMountPath(text, s.os)
		if problem != "" {
			return s, decision.Invalid(fmt.Sprintf("annotation %s of the pod %s: give an absolute path such as %s", v1alpha1.AnnotationMountPath, problem, target.DefaultMountPath))
		}
		s.mountPath = mountPath
	}
	skip, problem := parseSkip(r)
	if problem != "" {
		return s, decision.Invalid(fmt.Sprintf("annotation %s of the pod %s: list names of its containers, separated by commas", v1alpha1.AnnotationSkipContainers, problem))
	}
	s.skip = skip
	return s, nil
}

// unread warns about annotations that look as if they chose something.
func unread(pod *corev1.Pod) []string {
	var warnings []string
	for key := range pod.Annotations {
		if name, ours := strings.CutPrefix(key, annotationPrefix); ours && key != v1alpha1.AnnotationMountPath && key != v1alpha1.AnnotationSkipContainers {
			warnings = append(warnings, fmt.Sprintf("annotation %s%s of the pod has no effect: those of pods are %s and %s", annotationPrefix, wording.Abbreviate(name), v1alpha1.AnnotationMountPath, v1alpha1.AnnotationSkipContainers))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// Characters that have no meaning to a shell, a kubelet's $(VARIABLE), or the files of any SDK.
var (
	slashPath = regexp.MustCompile(`^(/[A-Za-z0-9._@+-]+)+$`)
	drivePath = regexp.MustCompile(`^[A-Za-z]:([\\/][A-Za-z0-9._@+-]+)+$`)
)

// ParseMountPath reads the path of a folder in a container: it returns it without a slash at its end, or what is wrong with it.
func ParseMountPath(text string, os target.OS) (string, string) {
	if len(text) > maxMountPath {
		return "", fmt.Sprintf("is %d bytes long, at most %d are allowed", len(text), maxMountPath)
	}
	trimmed := strings.TrimSuffix(strings.TrimSuffix(text, "/"), `\`)
	switch {
	case drivePath.MatchString(trimmed) && os != target.Windows:
		return "", fmt.Sprintf("is %q, a path of Windows, but the pod runs on Linux", text)
	case !slashPath.MatchString(trimmed) && !drivePath.MatchString(trimmed):
		return "", fmt.Sprintf("is %q, which is not an absolute path of letters, digits and ._@+-", text)
	}
	slashed := strings.ReplaceAll(trimmed, `\`, "/")
	if path.Clean(slashed) != slashed {
		return "", fmt.Sprintf("is %q, which has . or .. in it", text)
	}
	return trimmed, ""
}

func parseSkip(r Request) ([]string, string) {
	text := r.Pod.Annotations[v1alpha1.AnnotationSkipContainers]
	if strings.TrimSpace(text) == "" {
		return nil, ""
	}
	names := strings.Split(text, ",")
	if len(names) > maxSkipped {
		return nil, fmt.Sprintf("lists %d containers, at most %d are allowed", len(names), maxSkipped)
	}
	known := containerNames(r.Pod)
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if problems := validation.IsDNS1123Label(names[i]); len(problems) > 0 {
			return nil, fmt.Sprintf("has %q in it, which is not a valid name of a container", wording.Abbreviate(names[i]))
		}
		// A pod that runs can not be put right: its annotation may name containers that are yet to come.
		if r.Ephemeral == nil && !slices.Contains(known, names[i]) {
			return nil, fmt.Sprintf("names %q, but the pod has no such container (it has %s)", names[i], strings.Join(known, ", "))
		}
	}
	return names, ""
}
