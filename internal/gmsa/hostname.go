package gmsa

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission"
)

// MaxHostname is the length of a NetBIOS name, in characters.
const MaxHostname = 15

// Hostname gives a new pod that runs as a group managed service account the host name that is proposed, where it has none of
// its own: containers of one account break each other's trust with the domain when they have the same name, and Windows knows
// them by the first 15 characters of it. It returns nothing where there is nothing to do.
func Hostname(pod *corev1.Pod, references []Reference, proposed string) []admission.Operation {
	if proposed == "" || len(references) == 0 || pod.Spec.Hostname != "" || pod.Spec.HostNetwork {
		return nil
	}
	return []admission.Operation{{Op: "add", Path: "/spec/hostname", Value: proposed}}
}
