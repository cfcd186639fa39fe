package consumers

import (
	"fmt"
	"testing"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/route53"

	"github.com/credence-id/credence/test/testkit"
)

// The DNS-01 solver of cert-manager for Route 53 answers challenges with ambient credentials: each challenge has a solver of its own.
func TestCertManagerSolvesAcrossARenewal(t *testing.T) {
	w := newWorld(t)
	w.renewals(t, audience, func(n int) string {
		solver := testkit.Need(route53.NewDNSProvider(t.Context(), "", "", zone, "", "", "", true, nil, "test"))(t)
		name := fmt.Sprintf("_acme-challenge-%d.example.com", n)
		testkit.Must(t, solver.Present(t.Context(), "example.com", name+".", "value"))
		return w.changedBy(t, name)
	})
}
