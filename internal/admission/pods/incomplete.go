package pods

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/decision"
)

// Incomplete decides on a pod after all mutating webhooks: it refuses what Decide refuses, and what Decide would still add to.
func Incomplete(r Request) *Denial {
	result := Decide(r)
	if result.Denial != nil || len(result.Patch) == 0 {
		return result.Denial
	}
	const most = 20
	lacks := missing(r.Pod, result.Patch)
	if more := len(lacks) - most; more > 0 {
		lacks = append(lacks[:most], fmt.Sprintf("%d more", more))
	}
	return decision.Invalid(fmt.Sprintf("the pod lacks %s, which credence-webhook adds for service account %s/%s: a webhook of the cluster that was called later removed it, or credence-webhook was not called: a cluster admin looks for that webhook with: kubectl get mutatingwebhookconfigurations",
		strings.Join(lacks, ", "), r.Namespace, r.Account.Name))
}

// missing names the fields that a patch adds to a pod, such as spec.containers[main].env[AWS_REGION].
func missing(pod *corev1.Pod, patch []Operation) []string {
	var all []string
	for _, operation := range patch {
		segments := strings.Split(strings.TrimPrefix(strings.TrimSuffix(operation.Path, "/-"), "/"), "/")
		path := ""
		for i, segment := range segments {
			index, err := strconv.Atoi(segment)
			switch {
			case err == nil:
				path += "[" + nameOf(pod, segments[i-1], index) + "]"
			case path == "":
				path = segment
			default:
				path += "." + strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
			}
		}
		names := namesIn(operation.Value)
		if len(names) == 0 {
			all = append(all, path)
		}
		for _, name := range names {
			all = append(all, path+"["+name+"]")
		}
	}
	return all
}

// nameOf is the name of a container by its place in a list.
func nameOf(pod *corev1.Pod, list string, index int) string {
	switch {
	case list == "initContainers" && index < len(pod.Spec.InitContainers):
		return pod.Spec.InitContainers[index].Name
	case list == "containers" && index < len(pod.Spec.Containers):
		return pod.Spec.Containers[index].Name
	case list == "ephemeralContainers" && index < len(pod.Spec.EphemeralContainers):
		return pod.Spec.EphemeralContainers[index].Name
	}
	return strconv.Itoa(index)
}

// namesIn are the names of list elements, or of one element; of another value, none.
func namesIn(value any) []string {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	type named struct {
		Name string `json:"name"`
	}
	var list []named
	if json.Unmarshal(text, &list) != nil {
		list = make([]named, 1)
		_ = json.Unmarshal(text, &list[0]) // another value has no name
	}
	var names []string
	for _, element := range list {
		if element.Name != "" {
			names = append(names, element.Name)
		}
	}
	return names
}
