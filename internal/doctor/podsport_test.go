package doctor

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

func TestTrusted(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	authority := func() *pki.Authority {
		pair := testkit.Need(pki.New("ca", 48*time.Hour, now, rand.Reader))(t)
		authority := testkit.Need(pki.Load(pair.Certificate, pair.Key, now))(t)
		return authority
	}
	ours, other := authority(), authority()
	pair := testkit.Need(ours.Issue(pki.Request{CommonName: "agent", Hosts: []string{"agent.ns.svc"}, Lifetime: time.Hour}, now, rand.Reader))(t)
	for name, test := range map[string]struct {
		certificate, authorities []byte
		host                     string
		after                    time.Duration
		want                     string
	}{
		"trusted":           {pair.Certificate, append(other.PEM(), ours.PEM()...), "agent.ns.svc", 0, ""},
		"other authority":   {pair.Certificate, other.PEM(), "agent.ns.svc", 0, "unknown authority"},
		"no authority":      {pair.Certificate, nil, "agent.ns.svc", 0, "unknown authority"},
		"another name":      {pair.Certificate, ours.PEM(), "agent.other.svc", 0, "not agent.other.svc"},
		"ended":             {pair.Certificate, ours.PEM(), "agent.ns.svc", 2 * time.Hour, "expired"},
		"no certificate":    {nil, ours.PEM(), "agent.ns.svc", 0, "not PEM"},
		"another PEM block": {pair.Key, ours.PEM(), "agent.ns.svc", 0, "x509"},
	} {
		err := trusted(test.certificate, test.authorities, test.host, now.Add(test.after))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Where kubelets bring the driver tokens for the agent, an agent must be ready at the address of the driver, with a certificate that it trusts.
func TestPortOfTheAgentForPods(t *testing.T) {
	pair := testkit.Need(pki.New("ca", 48*time.Hour, now, rand.Reader))(t)
	authority := testkit.Need(pki.Load(pair.Certificate, pair.Key, now))(t)
	serving := testkit.Need(authority.Issue(pki.Request{CommonName: "agent", Hosts: []string{"credence-agent.credence-system.svc"}, Lifetime: time.Hour}, now, rand.Reader))(t)
	encode := base64.StdEncoding.EncodeToString
	driver := func(audience string) string {
		return "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: " + v1alpha1.CSIDriver + "}\nspec: {tokenRequests: [{audience: '" + audience + "'}]}"
	}
	settings := func(server string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: credence-node, name: agent}\ndata:\n  kubeconfig: |\n    {apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}], clusters: [{name: c, cluster: {server: '" +
			server + "', certificate-authority-data: " + encode(pair.Certificate) + "}}]}"
	}
	const mounts = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {namespace: credence-node, name: credence-node}\nspec: {template: {spec: {volumes: [{name: agent, configMap: {name: agent}}]}}}"
	slice := func(ready string) string {
		return "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: credence-system, name: a, labels: {kubernetes.io/service-name: credence-agent}}\nendpoints: [{conditions: {ready: " + ready + "}}]"
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {namespace: credence-system, name: credence-agent-tls}\ndata: {tls.crt: " + encode(serving.Certificate) + "}"
	const may = "{kind: Use, user: 'system:serviceaccount:credence-system:credence-agent', identity: /, "
	rights := joined(may+"verb: create, resource: tokenreviews}", may+"verb: get, resource: pods}")
	used, address := driver(v1alpha1.AudienceAgent), settings("https://credence-agent.credence-system.svc:8443")
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"no driver":           {"", nil},
		"not used":            {driver("other"), nil},
		"all is well":         {joined(used, rights, mounts, address, slice("true"), secret), []string{"pass: the agent is ready where nodes request tokens of it"}},
		"no rights":           {joined(used, mounts, address, slice("true"), secret), []string{"fail: the agent may not create tokenreviews", "fail: the agent may not get pods"}},
		"no address":          {joined(used, rights, strings.Replace(mounts, "name: agent,", "name: other,", 1)), []string{"fail: no ConfigMap with its address"}},
		"no ConfigMap":        {joined(used, rights, mounts), []string{"fail: configmaps credence-node/agent is missing"}},
		"no agent":            {joined(used, rights, mounts, address, slice("false"), secret), []string{"fail: no agent is ready behind Service credence-system/credence-agent"}},
		"another certificate": {joined(used, rights, mounts, settings("https://credence-agent.other.svc"), strings.NewReplacer("credence-system", "other").Replace(joined(slice("true"), secret))), []string{"fail: not credence-agent.other.svc"}},
		"no Service":          {joined(used, rights, mounts, settings("https://agent.example.com")), []string{"skipped: which is not a Service of the cluster"}},
		"not read":            {joined(used, rights, deny("get", "daemonsets")), []string{"skipped: you may not get daemonsets in namespace credence-node"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			examination().checkPodsPort(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
}
