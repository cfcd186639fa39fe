package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
)

const (
	podsPort = "pods-port"
	// driverName is the name of the driver's DaemonSet, and of its namespace.
	driverName  = "credence-node"
	podsPortDoc = "docs/howto/tokens-without-secrets.md#identities-of-another-cluster"
)

// checkPodsPort looks at the port of agents at which the drivers of nodes get tokens for pods whose identities are of another cluster. Where it is used,
// kubelets bring the driver tokens for the agent.
func (d *Examination) checkPodsPort(ctx context.Context, found *Diagnosis, workload *cluster.API) {
	var driver struct {
		Spec struct{ TokenRequests []struct{ Audience string } }
	}
	err := workload.Get(ctx, &driver, cluster.Place{API: "/apis/storage.k8s.io/v1", Resource: "csidrivers", Name: v1alpha1.CSIDriver})
	if apierrors.IsNotFound(err) || skipped(found, podsPort, "get csidrivers", err) {
		return
	}
	if err != nil {
		found.add(podsPort, Fail, "", "read CSIDriver %s: %v", v1alpha1.CSIDriver, err)
		return
	}
	if !slices.ContainsFunc(driver.Spec.TokenRequests, func(r struct{ Audience string }) bool { return r.Audience == v1alpha1.AudienceAgent }) {
		return
	}
	before := len(found.Findings)
	checkPodsRights(ctx, found, workload)
	d.checkPodsAddress(ctx, found, workload)
	if len(found.Findings) == before {
		found.pass(podsPort, "the agent is ready where nodes request tokens of it, has a certificate that they trust, and the rights that it needs")
	}
}

// checkPodsRights sees whether the agent can find out which pod a token is of.
func checkPodsRights(ctx context.Context, found *Diagnosis, workload *cluster.API) {
	for _, right := range []authority.Question{
		{Verb: "create", Object: authority.Object{Kind: authority.Kind{Group: "authentication.k8s.io", Resource: "tokenreviews"}}},
		{Verb: "get", Object: authority.Object{Kind: authority.Kind{Resource: "pods"}}},
	} {
		right.Subject = rights.Agent().In("system:authenticated")
		answer, err := authority.Ask(ctx, workload, right)
		switch {
		case skipped(found, podsPort, "create subjectaccessreviews", err):
			return
		case err != nil:
			found.add(podsPort, Fail, "", "review the rights of the agent: %v", err)
			return
		case !answer.Allowed:
			found.add(podsPort, Fail, "a cluster admin runs: kubectl apply -f deploy/options/agent-pods.yaml", "the agent may not %s %s, so that it gives no tokens to pods", right.Verb, right.Object.Resource)
		}
	}
}

// checkPodsAddress sees whether agents are ready where the drivers' kubeconfig leads, and have a certificate that it trusts.
func (d *Examination) checkPodsAddress(ctx context.Context, found *Diagnosis, workload *cluster.API) {
	var drivers struct {
		Spec struct {
			Template struct{ Spec corev1.PodSpec }
		}
	}
	if !readFor(ctx, found, workload, &drivers, Skipped, cluster.Place{API: "/apis/apps/v1", Namespace: driverName, Resource: "daemonsets", Name: driverName}) {
		return
	}
	volumes := drivers.Spec.Template.Spec.Volumes
	at := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "agent" && v.ConfigMap != nil })
	if at < 0 {
		found.add(podsPort, Fail, "set node.agentConfigMap of the chart: "+podsPortDoc, "CSIDriver %s has kubelets bring tokens for the agent, and DaemonSet %s/%s no ConfigMap with its address", v1alpha1.CSIDriver, driverName, driverName)
		return
	}
	var settings corev1.ConfigMap
	if !readFor(ctx, found, workload, &settings, Fail, cluster.Place{Namespace: driverName, Resource: "configmaps", Name: volumes[at].ConfigMap.Name}) {
		return
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(settings.Data["kubeconfig"]))
	if err != nil {
		found.add(podsPort, Fail, "make it anew: "+podsPortDoc, "ConfigMap %s/%s: key kubeconfig: %v", driverName, settings.Name, err)
		return
	}
	address, err := url.Parse(config.Host)
	var names []string
	if err == nil {
		names = strings.Split(address.Hostname(), ".")
	}
	if len(names) < 3 || names[2] != "svc" {
		found.skip(podsPort, "ConfigMap %s/%s leads to %s, which is not a Service of the cluster", driverName, settings.Name, config.Host)
		return
	}
	service, namespace := names[0], names[1]
	if !checkPodsService(ctx, found, workload, namespace, service) {
		return
	}
	var serving corev1.Secret
	if !readFor(ctx, found, workload, &serving, Skipped, cluster.Place{Namespace: namespace, Resource: "secrets", Name: certificates.SecretOf(service)}) {
		return
	}
	host := cmp.Or(config.ServerName, address.Hostname())
	if err := trusted(serving.Data[corev1.TLSCertKey], config.CAData, host, d.Now()); err != nil {
		found.add(podsPort, Fail, "make the ConfigMap anew with the agent's authority, and restart the DaemonSet: "+podsPortDoc,
			"ConfigMap %s/%s does not trust the certificate in Secret %s/%s: %v", driverName, settings.Name, namespace, serving.Name, err)
	}
}

// checkPodsService reports whether an agent is ready behind a Service.
func checkPodsService(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace, service string) bool {
	type endpoint struct{ Conditions struct{ Ready *bool } }
	ready := false
	slicesOf := cluster.Listing{API: "/apis/discovery.k8s.io/v1", Namespace: namespace, Resource: "endpointslices", Labels: "kubernetes.io/service-name=" + service}
	err := cluster.Each(ctx, workload, slicesOf, func(s *struct{ Endpoints []endpoint }) {
		ready = ready || slices.ContainsFunc(s.Endpoints, func(e endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	})
	switch {
	case skipped(found, podsPort, "list endpointslices in namespace "+namespace, err):
	case err != nil:
		found.add(podsPort, Fail, "", "list endpointslices in namespace %s: %v", namespace, err)
	case !ready:
		found.add(podsPort, Fail, "see whether the agent runs with --pods-port, and the Service leads to it: "+podsPortDoc,
			"no agent is ready behind Service %s/%s, where nodes request tokens for pods", namespace, service)
	}
	return err == nil && ready
}

// readFor reads an object. It reports whether the check can go on: if not, the reason is noted, with a verdict if the object is missing.
func readFor(ctx context.Context, found *Diagnosis, from *cluster.API, into any, missing string, at cluster.Place) bool {
	err := from.Get(ctx, into, at)
	switch {
	case skipped(found, podsPort, "get "+at.Resource+" in namespace "+at.Namespace, err):
	case apierrors.IsNotFound(err):
		found.add(podsPort, missing, "", "%s %s/%s is missing: the agent's address and certificate are not known", at.Resource, at.Namespace, at.Name)
	case err != nil:
		found.add(podsPort, Fail, "", "read %s %s/%s: %v", at.Resource, at.Namespace, at.Name, err)
	}
	return err == nil
}

// trusted returns an error if a client that trusts the authorities does not trust the certificate for the host now.
func trusted(certificate, authorities []byte, host string, now time.Time) error {
	first, others := pem.Decode(certificate)
	if first == nil {
		return errors.New("it is not PEM")
	}
	leaf, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{DNSName: host, CurrentTime: now, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
	options.Roots.AppendCertsFromPEM(authorities)
	options.Intermediates.AppendCertsFromPEM(others)
	_, err = leaf.Verify(options)
	return err
}
