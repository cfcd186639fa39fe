package v1

// Annotations of pods in the time before there were fields (Kubernetes 1.14). They are read only where the gate
// WindowsGMSAAnnotations is on. A container's key is its name, and one of the two suffixes.
const (
	// AnnotationPodName names the GMSACredentialSpec of a pod.
	AnnotationPodName = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
	// AnnotationPodContents is its credential spec, as JSON.
	AnnotationPodContents = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
	// AnnotationSuffixContainerName names that of one container.
	AnnotationSuffixContainerName = ".container.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
	// AnnotationSuffixContainerContents is its credential spec, as JSON.
	AnnotationSuffixContainerContents = ".container.alpha.windows.kubernetes.io/gmsa-credential-spec"
)
