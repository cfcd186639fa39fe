package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
)

// misspelt matches the keys of labels and annotations that look like Credence's; the policy credence-annotations has the same rule.
var misspelt = regexp.MustCompile(`^(([a-z0-9.-]+\.)?credence\.dev/|.*workload-?identit(y|ies|es|ys)$)`)

// fileOfPod matches the annotations of pods that the webhook writes.
var fileOfPod = regexp.MustCompile(`^files\.identity\.credence\.dev/`)

// isRead reports whether something reads a label, or an annotation, of a resource.
func isRead(resource, what, key string) bool {
	switch resource + " " + what {
	case "namespaces label":
		return slices.Contains([]string{
			v1alpha1.LabelNamespaceIdentities, v1alpha1.LabelNamespaceDelivery, v1alpha1.LabelNamespaceContexts, v1alpha1.LabelNamespaceQuotas,
			accounts.LabelNamespaceProfiles, access.ModeLabel,
		}, key)
	case "serviceaccounts annotation":
		return key == v1alpha1.AnnotationAccountIdentities || key == v1alpha1.AnnotationImagePullIdentity
	case "pods annotation":
		return key == v1alpha1.AnnotationSkipContainers || key == v1alpha1.AnnotationMountPath || key == accounts.AnnotationFilledIn || fileOfPod.MatchString(key)
	}
	return false
}

// UnreadKeys returns the labels and annotations of an object that look like Credence's and that nothing reads, with the name of the object. The
// resource is namespaces, serviceaccounts or pods.
func UnreadKeys(resource string, o metav1.Object) (unread []string) {
	name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	for what, keys := range map[string]map[string]string{"label": o.GetLabels(), "annotation": o.GetAnnotations()} {
		for key := range keys {
			if misspelt.MatchString(key) && !isRead(resource, what, key) {
				unread = append(unread, fmt.Sprintf("%s %s of %s %s", what, key, strings.TrimSuffix(resource, "s"), name))
			}
		}
	}
	slices.Sort(unread)
	return unread
}

// cached is how long a kubelet may use a token of a service account.
const cached = time.Hour

// MadeLately reports whether kubelets may still use tokens of a namesake of a service account that was deleted before.
func MadeLately(account metav1.Object, now time.Time) bool {
	return now.Sub(account.GetCreationTimestamp().Time) < cached
}

// Outlived reports whether a pod is older than its service account, which was deleted and created again then.
func Outlived(account, pod metav1.Object) bool {
	return account.GetCreationTimestamp().After(pod.GetCreationTimestamp().Time)
}
