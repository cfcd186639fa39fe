//go:build linux

package dns

import (
	"errors"
	"fmt"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/core/dnsserver" // the server, as a plugin of caddy
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary the child; Args follow.
const Subcommand = "coredns"

// Settings is what differs from one cluster to the next.
type Settings struct {
	// Address is where it listens, Domain the zone of the cluster.
	Address, Domain string
	// Kubeconfig is that of a user who may list and watch Services, EndpointSlices and namespaces.
	Kubeconfig string
}

// Args are the configuration (a Corefile), whole.
func (s Settings) Args() []string {
	return []string{fmt.Sprintf(`.:53 {
	bind %[1]s
	errors
	ready %[1]s:8181
	kubernetes %[2]s in-addr.arpa ip6.arpa {
		kubeconfig %[3]q
		ttl 5
	}
	loadbalance
}
`, s.Address, s.Domain, s.Kubeconfig)}
}

// Run is the child. It ends with the process.
func Run(args []string) error {
	child.DieWithParent()
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(args[0]), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		return err
	}
	instance.Wait()
	return errors.New("it has stopped to serve")
}
