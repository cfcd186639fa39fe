package gmsa

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/decision"
)

// MaxHostname is the length of a NetBIOS name, in characters.
const MaxHostname = 15

// Hostname sets the proposed host name on a new pod that runs as a group managed service account and has no host name.
// Containers of one account with the same name break each other's trust with the domain, and Windows uses only the first 15
// characters of the name. It returns nil if the pod needs no change.
func Hostname(pod *corev1.Pod, references []Reference, proposed string) []decision.Operation {
	if proposed == "" || len(references) == 0 || pod.Spec.Hostname != "" || pod.Spec.HostNetwork {
		return nil
	}
	return []decision.Operation{{Op: "add", Path: "/spec/hostname", Value: proposed}}
}
