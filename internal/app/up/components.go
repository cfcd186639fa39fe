//go:build unix

package up

import (
	"fmt"
	"net"
	"strconv"

	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/pki"
)

// installation is what a component's arguments are made of.
type installation struct {
	dir    home.Dir
	config home.Config
	// extra are further arguments, by the name of the component.
	extra map[string][]string
	// node is true if the cluster of this run has a node.
	node bool
	// driver is the file of the program that delivers tokens into volumes of that node.
	driver string
	// delivery is how tokens come to pods of namespaces that do not choose.
	delivery string
	// imageCredentials is the file of the program that has passwords for images of the registries in the file imageRegistries; empty: none.
	imageCredentials, imageRegistries string
	// guard is the template of the node's guard, or empty; guardAllow the file of the pods that it allows, or empty.
	guard, guardAllow string
}

// phase is when a component can be started.
type phase int

const (
	// ground: first; all others need it to be ready.
	ground phase = iota
	// inCluster: once the cluster is ready and holds the component's rights.
	inCluster
	// byItself: at once if it has run before, as it then needs no cluster to start; else as inCluster.
	byItself
)

// component is one process of an installation.
type component struct {
	name    string
	program string
	phase   phase
	// arguments are those of the program; ports are offsets from the installation's first port, with what each is for.
	arguments func(installation) []string
	ports     []port
	// readiness is the offset of the port whose /readyz answers 200 once the component is ready.
	readiness int
	// serving is the certificate that it shows, client the one with which it is known to the cluster, and caller the one with
	// which the API server is known to it; nil: none is made.
	serving, client, caller *pki.Request
}

type port struct {
	offset  int
	purpose string
}

// Offsets from the first port of an installation.
const (
	clusterPort           = 0
	apiserverPort         = 1
	discoveryPort         = home.DiscoveryOffset
	discoveryHealthPort   = 3
	controllerHealthPort  = 4
	agentHealthPort       = 5
	webhookPort           = 6
	webhookHealthPort     = 7
	binderHealthPort      = 8
	controllerManagerPort = 9
	profilesHealthPort    = 10
)

// publishedDocuments is the ConfigMap through which the apiserver hands its public documents to discovery.
const publishedDocuments = cluster.Namespace + "/credence-discovery"

// clusterName is what usernames of service accounts have for the cluster.
const clusterName = "plane.example"

// webhookCaller is the user that the API server is when it calls admission webhooks; it has no rights.
const webhookCaller = "credence:webhook-caller"

// components is everything that runs, in the order in which it is shown. One more component is one more entry.
var components = []component{
	{
		name: "devcluster", program: "credence-devcluster", phase: ground,
		arguments: func(i installation) []string {
			return append([]string{
				"--dir", i.dir.Path("devcluster"),
				"--port", i.port(clusterPort),
				"--controller-manager-port", i.port(controllerManagerPort),
				"--apiserver-arg=--admission-control-config-file=" + i.admissionFile(),
			}, i.nodeArguments()...)
		},
		ports:     []port{{clusterPort, "kube-apiserver"}, {controllerManagerPort, "kube-controller-manager"}},
		readiness: clusterPort,
	},
	{
		name: "apiserver", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return append([]string{
				"apiserver",
				"--bind-address", "127.0.0.1",
				"--secure-port", i.port(apiserverPort),
				"--tls-cert-file", i.certificateFile("apiserver"),
				"--tls-private-key-file", i.keyFile("apiserver"),
				"--kubeconfig", i.kubeconfigFile("apiserver"),
				"--authentication-kubeconfig", i.kubeconfigFile("apiserver"),
				"--authorization-kubeconfig", i.kubeconfigFile("apiserver"),
				"--keys-dir", i.dir.Path("keys"),
				"--issuer", string(i.config.Issuer),
				"--publish-configmap", publishedDocuments,
				"--audit-log-path", i.dir.Path("apiserver-audit.log"),
				"--audit-log-maxsize", "50",
				"--audit-log-maxbackup", "3",
			}, i.storageArguments()...)
		},
		ports:     []port{{apiserverPort, "the aggregated API server"}},
		readiness: apiserverPort,
		serving:   serving("credence-apiserver", cluster.ServiceName+"."+cluster.Namespace+".svc"),
		client:    serviceAccount("credence-apiserver"),
	},
	{
		name: "controller", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return []string{
				"controller",
				"--bind-address", "127.0.0.1",
				"--health-port", i.port(controllerHealthPort),
				"--tls-cert-file", i.certificateFile("controller"),
				"--tls-private-key-file", i.keyFile("controller"),
				"--kubeconfig", i.kubeconfigFile("controller"),
				"--keys-dir", i.dir.Path("keys"),
				"--issuer", string(i.config.Issuer),
				"--documents-configmap", publishedDocuments,
			}
		},
		ports:     []port{{controllerHealthPort, "the key controller's health"}},
		readiness: controllerHealthPort,
		serving:   serving("credence-controller"),
		client:    serviceAccount("credence-controller"),
	},
	{
		name: "agent", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return []string{
				"agent",
				"--bind-address", "127.0.0.1",
				"--health-port", i.port(agentHealthPort),
				"--tls-cert-file", i.certificateFile("agent"),
				"--tls-private-key-file", i.keyFile("agent"),
				"--kubeconfig", i.kubeconfigFile("agent"),
				"--delivery", i.delivery,
			}
		},
		ports:     []port{{agentHealthPort, "the agent's health"}},
		readiness: agentHealthPort,
		serving:   serving("credence-agent"),
		client:    serviceAccount("credence-agent"),
	},
	{
		name: "binder", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return []string{
				"binder",
				"--bind-address", "127.0.0.1",
				"--health-port", i.port(binderHealthPort),
				"--tls-cert-file", i.certificateFile("binder"),
				"--tls-private-key-file", i.keyFile("binder"),
				"--kubeconfig", i.kubeconfigFile("binder"),
			}
		},
		ports:     []port{{binderHealthPort, "the binder's health"}},
		readiness: binderHealthPort,
		serving:   serving("credence-binder"),
		client:    serviceAccount("credence-binder"),
	},
	{
		name: "profiles", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return []string{
				"profiles",
				"--bind-address", "127.0.0.1",
				"--health-port", i.port(profilesHealthPort),
				"--tls-cert-file", i.certificateFile("profiles"),
				"--tls-private-key-file", i.keyFile("profiles"),
				"--kubeconfig", i.kubeconfigFile("profiles"),
				"--cluster-name", clusterName,
			}
		},
		ports:     []port{{profilesHealthPort, "the health of the controllers of profiles"}},
		readiness: profilesHealthPort,
		serving:   serving("credence-profiles"),
		client:    serviceAccount("credence-profiles"),
	},
	{
		name: "webhook", program: "credence-server", phase: inCluster,
		arguments: func(i installation) []string {
			return []string{
				"webhook",
				"--bind-address", "127.0.0.1",
				"--port", i.port(webhookPort),
				"--health-port", i.port(webhookHealthPort),
				"--tls-cert-file", i.certificateFile("webhook"),
				"--tls-private-key-file", i.keyFile("webhook"),
				"--kubeconfig", i.kubeconfigFile("webhook"),
				"--delivery", i.delivery,
				"--client-ca-file", i.dir.CAFile(),
				"--client-name", webhookCaller,
			}
		},
		ports:     []port{{webhookPort, "the admission webhook"}, {webhookHealthPort, "the webhook's health"}},
		readiness: webhookHealthPort,
		serving:   serving("credence-webhook", "credence-webhook."+cluster.Namespace+".svc"),
		client:    serviceAccount("credence-webhook"),
		caller:    &pki.Request{CommonName: webhookCaller},
	},
	{
		name: "discovery", program: "credence-discovery", phase: byItself,
		arguments: func(i installation) []string {
			return []string{
				"--bind-address", "127.0.0.1",
				"--port", i.port(discoveryPort),
				"--health-port", i.port(discoveryHealthPort),
				"--tls-cert-file", i.certificateFile("discovery"),
				"--tls-private-key-file", i.keyFile("discovery"),
				"--kubeconfig", i.kubeconfigFile("discovery"),
				"--issuer", string(i.config.Issuer),
				"--documents-configmap", publishedDocuments,
				"--documents-cache", i.dir.Path("discovery"),
			}
		},
		ports:     []port{{discoveryPort, "the discovery server"}, {discoveryHealthPort, "the discovery server's health"}},
		readiness: discoveryHealthPort,
		serving:   serving("credence-discovery", "credence-discovery."+cluster.Namespace+".svc"),
		client:    serviceAccount("credence-discovery"),
	},
}

// serving is a certificate for this machine, and for a Service's name in the cluster if there is one.
func serving(name string, serviceHosts ...string) *pki.Request {
	return &pki.Request{CommonName: name, Hosts: append(serviceHosts, "localhost"), IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// serviceAccount is a client certificate with the name and groups that the service account of the chart has, so that the
// same roles and bindings serve both.
func serviceAccount(name string) *pki.Request {
	account := authority.ServiceAccount(cluster.Namespace, name, "")
	return &pki.Request{CommonName: account.Name, Organizations: account.Groups}
}

func (i installation) storageArguments() []string {
	if i.config.Storage == home.InCluster {
		return []string{"--storage", home.InCluster}
	}
	return []string{"--etcd-data-dir", i.dir.Path("apiserver", "etcd")}
}

func (i installation) port(offset int) string { return strconv.Itoa(i.config.Port + offset) }

// readyURL is where a component reports ready. The self-check reports a ring without a signing key.
func (i installation) readyURL(c component) string {
	url := fmt.Sprintf("https://127.0.0.1:%s/readyz", i.port(c.readiness))
	if c.name == "apiserver" {
		url += "?exclude=signing-keys"
	}
	return url
}

func (i installation) certificateFile(name string) string { return i.dir.Path("pki", name, "tls.crt") }
func (i installation) keyFile(name string) string         { return i.dir.Path("pki", name, "tls.key") }
func (i installation) clientCertificateFile(name string) string {
	return i.dir.Path("pki", name, "client.crt")
}
func (i installation) clientKeyFile(name string) string { return i.dir.Path("pki", name, "client.key") }
func (i installation) kubeconfigFile(name string) string {
	return i.dir.Path("pki", name, "kubeconfig")
}

func (i installation) callerCertificateFile(name string) string {
	return i.dir.Path("pki", name, "caller.crt")
}
func (i installation) callerKeyFile(name string) string { return i.dir.Path("pki", name, "caller.key") }
func (i installation) admissionFile() string            { return i.dir.Path("pki", "admission.yaml") }

func (i installation) authorityFile() string    { return i.dir.Path("devcluster", "pki", "ca.crt") }
func (i installation) authorityKeyFile() string { return i.dir.Path("devcluster", "pki", "ca.key") }
func (i installation) clusterAdminConfig() string {
	return i.dir.Path("devcluster", "admin.kubeconfig")
}
func (i installation) appliedManifestsFile() string { return i.dir.Path("applied.sha256") }
