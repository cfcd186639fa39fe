package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// AddDelivery adds the flag --delivery, which the webhook and the agent of an installation have alike.
func AddDelivery(flags *pflag.FlagSet, delivery *string) {
	flags.StringVar(delivery, "delivery", v1alpha1.DeliverySecret, "how tokens come to the pods of namespaces without the label "+v1alpha1.LabelNamespaceDelivery+": "+v1alpha1.DeliverySecret+" (in Secrets) or "+v1alpha1.DeliveryCSI+" (in volumes of credence-node, which are not stored); the same for webhook and agent")
}

// CheckDelivery checks the value of --delivery, empty or not.
func CheckDelivery(delivery string) error {
	if delivery == "" || slices.Contains(v1alpha1.Deliveries(), delivery) {
		return nil
	}
	return fmt.Errorf("--delivery %q is not a way in which tokens come to pods: give %s", delivery, strings.Join(v1alpha1.Deliveries(), " or "))
}
