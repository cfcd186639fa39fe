package gmsa

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/decision"
)

// annotated are the references in annotations, the pod's first.
func annotated(annotations map[string]string) []Reference {
	containers := map[string]bool{}
	for key := range annotations {
		if container, ok := AnnotationOf(key); ok {
			containers[container] = true
		}
	}
	var found []Reference
	for _, container := range slices.Sorted(maps.Keys(containers)) {
		name, contents := AnnotationKeys(container)
		if annotations[name] == "" && annotations[contents] == "" {
			continue
		}
		found = append(found, Reference{
			Container: container, Name: annotations[name], Contents: annotations[contents],
			NamePath: annotationPath(name), ContentsPath: annotationPath(contents),
			pointer: "/metadata/annotations/" + strings.ReplaceAll(strings.ReplaceAll(contents, "~", "~0"), "/", "~1"), annotation: true,
		})
	}
	return found
}

// AnnotationOf returns the container that an annotation is for ("" is the pod), and false if the key is not such an annotation.
func AnnotationOf(key string) (container string, ok bool) {
	if key == v1.AnnotationPodName || key == v1.AnnotationPodContents {
		return "", true
	}
	for _, suffix := range []string{v1.AnnotationSuffixContainerName, v1.AnnotationSuffixContainerContents} {
		if container, ok := strings.CutSuffix(key, suffix); ok && container != "" {
			return container, true
		}
	}
	return "", false
}

// AnnotationKeys are the annotations of a container, or of the pod (""), for the name and for the contents.
func AnnotationKeys(container string) (name, contents string) {
	if container == "" {
		return v1.AnnotationPodName, v1.AnnotationPodContents
	}
	return container + v1.AnnotationSuffixContainerName, container + v1.AnnotationSuffixContainerContents
}

func annotationPath(key string) string { return "metadata.annotations[" + key + "]" }

// Unchanged refuses (400) an update that changes, adds or removes an annotation that names the account of a pod's containers. The
// node reads it without another check by the API server: fields are immutable, annotations are not.
func Unchanged(old, now map[string]string) *decision.Denial {
	keys := map[string]bool{}
	for _, annotations := range []map[string]string{old, now} {
		for key := range annotations {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if _, ours := AnnotationOf(key); ours && old[key] != now[key] {
			return decision.BadRequest(fmt.Sprintf("%s of a pod that exists can't be %s: it names the Active Directory account of its containers; create the pod anew",
				annotationPath(key), change(old[key], now[key]))).At(annotationPath(key))
		}
	}
	return nil
}

func change(old, now string) string {
	switch {
	case old == "":
		return "added"
	case now == "":
		return "removed"
	}
	return "changed"
}
