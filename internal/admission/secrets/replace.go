package secrets

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// agentAnnotations are those that the agent writes about the data.
var agentAnnotations = []string{v1alpha1.AnnotationRenewTimestamp, v1alpha1.AnnotationInputs, v1alpha1.AnnotationOrphaned, v1alpha1.AnnotationCopiedKeys}

// replaced reports whether a tool puts a manifest in place of a Secret: the user who requested its tokens writes the same request again,
// without what was filled in since.
func (r Request) replaced() bool {
	if !r.sameRequest() || r.User.Name == r.Agent {
		return false
	}
	if before, known := tokensecret.RequestedBy(r.Old); !known || before.Name != r.User.Name || before.UID != r.User.UID {
		return false
	}
	_, token := r.Secret.Data[v1alpha1.SecretToken]
	_, config := r.Secret.Data[v1alpha1.SecretConfig]
	_, configured := r.Old.Data[v1alpha1.SecretConfig]
	return len(tokensecret.Requester(r.Secret)) == 0 || configured && !config && !token
}

// keep returns a Secret that replaces another one with what was filled into that, and the patch that puts it there: the data that the agent and
// this webhook have written, and the annotations and the label that belong to it.
func (r Request) keep() (*corev1.Secret, []Operation) {
	kept, operations := r.Secret.DeepCopy(), []Operation(nil)
	if kept.Data == nil {
		kept.Data = map[string][]byte{}
		operations = append(operations, Operation{Op: "add", Path: "/data", Value: map[string][]byte{}})
	}
	for _, key := range r.filledKeys() {
		content, had := r.Old.Data[key]
		if _, given := kept.Data[key]; had && !given {
			kept.Data[key] = content
			operations = append(operations, Operation{Op: "add", Path: path(key), Value: content})
		}
	}
	for _, annotation := range agentAnnotations {
		value, had := r.Old.Annotations[annotation]
		if _, given := kept.Annotations[annotation]; had && !given {
			kept.Annotations[annotation] = value
			operations = append(operations, Operation{Op: "add", Path: metadataPath("annotations", annotation), Value: value})
		}
	}
	if provider, had := r.Old.Labels[v1alpha1.LabelProvider]; had && kept.Labels[v1alpha1.LabelProvider] == "" {
		kept.Labels[v1alpha1.LabelProvider] = provider
		operations = append(operations, Operation{Op: "add", Path: metadataPath("labels", v1alpha1.LabelProvider), Value: provider})
	}
	return kept, operations
}

// filledKeys are the keys of the Secret before that its user has not written, in order.
func (r Request) filledKeys() []string {
	keys := map[string]bool{v1alpha1.SecretToken: true, v1alpha1.SecretConfig: true}
	for _, each := range r.before() {
		keys[each.Name] = true
	}
	if copied, ok := tokensecret.CopiedInto(r.Old); ok {
		for _, key := range copied.Keys {
			keys[key] = true
		}
	}
	if r.Old.Annotations[v1alpha1.AnnotationRegistries] != "" {
		keys[corev1.DockerConfigJsonKey] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func metadataPath(of, key string) string {
	return "/metadata/" + of + "/" + strings.ReplaceAll(key, "/", "~1")
}
