package consumers

import (
	"fmt"
	"testing"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/aws"

	"github.com/credence-id/credence/test/testkit"
)

// external-dns writes records with the credentials of each token in its turn.
func TestExternalDNSAcrossARenewal(t *testing.T) {
	w := newWorld(t)
	w.deliver(t, audience)
	config := externaldns.NewConfig()
	testkit.Must(t, config.ParseFlags([]string{"--provider=aws", "--source=service", "--domain-filter=example.com"}))
	provider := testkit.Need(aws.New(t.Context(), config, endpoint.NewDomainFilter(config.DomainFilter)))(t)
	w.renewals(t, audience, func(n int) string {
		name := fmt.Sprintf("record-%d.example.com", n)
		testkit.Must(t, provider.ApplyChanges(t.Context(), &plan.Changes{Create: []*endpoint.Endpoint{endpoint.NewEndpoint(name, endpoint.RecordTypeA, "192.0.2.1")}}))
		return w.changedBy(t, name)
	})
}
