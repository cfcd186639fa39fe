package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

const (
	// Relying parties grant a leeway of a minute or more, so that less than half of it is harmless.
	warnSkew, failSkew = 30 * time.Second, time.Minute
	systemNamespace    = rights.SystemNamespace
)

// checkReach requests the version of an API server, which every user may read, and compares its clock with this machine's.
func (d *doctor) checkReach(ctx context.Context, found *diagnosis, name string, cluster *api) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cluster.host, "/")+"/version", nil)
	if err != nil {
		found.add(name, verdictFail, "check the server in the kubeconfig", "%s: %v", cluster.host, err)
		return false
	}
	response, err := cluster.http.Do(request)
	if err != nil {
		found.unreachable = true
		found.add(name, verdictFail, "check that it runs, and can be reached from here", "%v", err)
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		found.add(name, verdictFail, "log in again, or choose other credentials by --kube-context or --user", "%s does not accept the credentials of the kubeconfig", cluster.host)
		return false
	case response.StatusCode >= http.StatusInternalServerError:
		found.unreachable = true
		found.add(name, verdictFail, "look at the log of the API server", "%s answers %s", cluster.host, response.Status)
		return false
	}
	found.pass(name, "%s", cluster.host)
	d.checkClock(found, strings.TrimSuffix(name, "api")+"clock", response.Header.Get("Date"))
	return true
}

func (d *doctor) checkClock(found *diagnosis, name, date string) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		found.skip(name, "the API server does not tell its time")
		return
	}
	// The header is in whole seconds, and some time has passed on the way.
	ours := d.now()
	skew := ours.Sub(theirs).Abs()
	const hint = "set both by NTP: tokens that seem to be issued in the future, or expired, are refused"
	switch {
	case skew > failSkew:
		found.add(name, verdictFail, hint, "the API server's is %s, this machine's %s", theirs.UTC().Format(time.RFC3339), ours.UTC().Format(time.RFC3339))
	case skew > warnSkew:
		found.add(name, verdictWarn, hint, "the API server's and this machine's differ by %s", skew.Round(time.Second))
	default:
		found.pass(name, "that of the API server and this machine's agree")
	}
}

// checkAPIServices sees whether the cluster forwards requests to Credence's API, and returns the group versions that it does not.
func checkAPIServices(ctx context.Context, found *diagnosis, cluster *api) (missing []schema.GroupVersion) {
	for _, group := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, identityv1alpha1.SchemeGroupVersion} {
		name := group.Version + "." + group.Group
		var service struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		err := cluster.raw(ctx, &service, "/apis/apiregistration.k8s.io/v1/apiservices/"+name)
		if skipped(found, "apiservice", "get apiservices", err) {
			return missing
		}
		if err != nil {
			found.add("apiservice", verdictFail, "install Credence in this cluster, or choose another one by --kube-context", "%s: %v", name, err)
			missing = append(missing, group)
			continue
		}
		available := slices.IndexFunc(service.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" })
		if available < 0 || service.Status.Conditions[available].Status != metav1.ConditionTrue {
			reason := "it is not known to be available"
			if available >= 0 {
				reason = service.Status.Conditions[available].Message
			}
			found.add("apiservice", verdictFail, "see whether credence-server apiserver runs, and its log", "%s is not available: %s", name, reason)
			missing = append(missing, group)
			continue
		}
		found.pass("apiservice", "%s is available", name)
	}
	return missing
}

// webhookConfigurations is the part of a list of them that is looked at.
type webhookConfigurations struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Webhooks []struct {
			Name         string `json:"name"`
			ClientConfig struct {
				CABundle []byte `json:"caBundle"`
			} `json:"clientConfig"`
			Rules []struct {
				Resources []string `json:"resources"`
			} `json:"rules"`
		} `json:"webhooks"`
	} `json:"items"`
}

// checkWebhooks sees whether pods and Secrets pass Credence's webhook.
func checkWebhooks(ctx context.Context, found *diagnosis, cluster *api) {
	var list webhookConfigurations
	err := cluster.raw(ctx, &list, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?limit=500")
	if skipped(found, "webhook", "list mutatingwebhookconfigurations", err) {
		return
	}
	if err != nil {
		found.add("webhook", verdictFail, "", "list webhook configurations: %v", err)
		return
	}
	covered, bare := map[string]bool{}, []string(nil)
	for _, configuration := range list.Items {
		for _, webhook := range configuration.Webhooks {
			if !strings.HasPrefix(configuration.Metadata.Name, "credence") && !strings.HasSuffix(webhook.Name, ".credence.dev") {
				continue
			}
			for _, rule := range webhook.Rules {
				for _, resource := range rule.Resources {
					covered[resource] = true
				}
			}
			if len(webhook.ClientConfig.CABundle) == 0 {
				bare = append(bare, webhook.Name)
			}
		}
	}
	for _, resource := range []string{"pods", "secrets"} {
		if !covered[resource] {
			found.add("webhook", verdictFail, "install Credence's webhook in the cluster of the workloads: deploy/base", "no MutatingWebhookConfiguration of Credence is for %s: they get nothing of an identity", resource)
			return
		}
	}
	if len(bare) > 0 {
		found.add("webhook", verdictWarn, "put the authority of the webhook's certificate into clientConfig.caBundle", "%s: without a caBundle the certificate must be of an authority that the API server trusts itself", some(bare))
		return
	}
	found.pass("webhook", "pods and Secrets pass it")
}

// checkAgent looks at the Lease by which agents take turns. Without one, the token Secrets tell.
func (d *doctor) checkAgent(ctx context.Context, found *diagnosis, cluster *api) {
	var lease struct {
		Spec struct {
			RenewTime            *metav1.MicroTime `json:"renewTime"`
			LeaseDurationSeconds int               `json:"leaseDurationSeconds"`
			HolderIdentity       string            `json:"holderIdentity"`
		} `json:"spec"`
	}
	err := cluster.raw(ctx, &lease, "/apis/coordination.k8s.io/v1/namespaces/"+systemNamespace+"/leases/"+agentAccount)
	switch {
	case apierrors.IsNotFound(err):
		found.skip("agent", "there is no Lease %s/%s: whether it works is seen by the token Secrets", systemNamespace, agentAccount)
	case skipped(found, "agent", "get leases in namespace "+systemNamespace, err):
	case err != nil:
		found.add("agent", verdictFail, "", "read its Lease: %v", err)
	case lease.Spec.RenewTime == nil || d.now().Sub(lease.Spec.RenewTime.Time) > 2*max(time.Duration(lease.Spec.LeaseDurationSeconds)*time.Second, failSkew):
		found.add("agent", verdictFail, "see whether credence-server agent runs, and its log: no token is renewed", "no agent holds the Lease %s/%s", systemNamespace, agentAccount)
	default:
		found.pass("agent", "%s runs", lease.Spec.HolderIdentity)
	}
}

// raw reads an object of a group that the clients do not know.
func (a *api) raw(ctx context.Context, into any, path string) error {
	address, query, _ := strings.Cut(path, "?")
	request := a.core.Get().MaxRetries(0).AbsPath(address)
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name, values := range parameters {
		request.Param(name, values[0])
	}
	body, err := rawAnswer(request.Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer to %s: %w", address, err)
	}
	return nil
}

// rawAnswer is an answer as it came, or the error that it holds.
func rawAnswer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// skipped notes a check that the user has no right to.
func skipped(found *diagnosis, check, right string, err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusForbidden {
		return false
	}
	found.skip(check, "you may not %s", right)
	return true
}
