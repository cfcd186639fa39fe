package doctor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/internal/wording"
)

// csiDriver is the name of the driver for volumes with tokens.
const csiDriver = "csi.identity.credence.dev"

// Relying parties grant a leeway of a minute or more, so that less than half of it is harmless.
const warnSkew, failSkew = 30 * time.Second, time.Minute

// checkReach requests the version of an API server, which every user may read, and compares its clock with this machine's.
func (d *Examination) checkReach(ctx context.Context, found *Diagnosis, name string, from *cluster.API) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(from.Host, "/")+"/version", nil)
	if err != nil {
		found.add(name, Fail, "check the server in the kubeconfig", "%s: %v", from.Host, err)
		return false
	}
	response, err := from.HTTP.Do(request)
	if err != nil {
		found.Unreachable = true
		found.add(name, Fail, "check that it runs, and can be reached from here", "%v", err)
		return false
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // without it, the version is not known
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		if token, err := membership.Read(from.TokenFile); err == nil {
			why := "would expire at %s: the cluster has left, or its account or Secret was deleted"
			if !d.Now().Before(token.Expires) {
				why = "expired at %s, as that of a cluster that was switched off for two days"
			}
			found.add(name, Fail, "a cluster admin of the identity cluster lets this cluster join again, with each namespace whose identities it may have: credence cluster join "+token.Secret.Name+" --identities NAMESPACE --out FOLDER",
				"%s does not accept the token of %s, which joining made. It "+why, from.Host, token.Account, token.Expires.UTC().Format(time.RFC3339))
			return false
		}
		found.add(name, Fail, "log in again, or choose other credentials by --kube-context or --user", "%s does not accept the credentials of the kubeconfig", from.Host)
		return false
	case response.StatusCode >= http.StatusInternalServerError:
		found.Unreachable = true
		found.add(name, Fail, "look at the log of the API server", "%s answers %s", from.Host, response.Status)
		return false
	}
	found.pass(name, "%s", from.Host)
	if d.reached == nil {
		d.reached = map[*cluster.API]reached{}
	}
	prefix := strings.TrimSuffix(name, "api")
	d.reached[from] = reached{
		minor: checkKubernetes(found, prefix+"kubernetes", body),
		ahead: d.checkClock(found, prefix+"clock", response.Header.Get("Date")),
	}
	return true
}

// checkDriver looks whether the CSIDriver has the fields that the cluster knows: an installation on an older minor left them out.
func (d *Examination) checkDriver(ctx context.Context, found *Diagnosis, from *cluster.API) {
	driver := map[string]any{}
	err := from.Get(ctx, &driver, cluster.Place{API: "/apis/storage.k8s.io/v1", Resource: "csidrivers", Name: csiDriver})
	if apierrors.IsNotFound(err) || skipped(found, "driver", "get csidrivers", err) {
		return
	}
	if err != nil {
		found.add("driver", Fail, "", "read CSIDriver %s: %v", csiDriver, err)
		return
	}
	for _, field := range minors.All().Fields {
		if _, has, _ := unstructured.NestedFieldNoCopy(driver, field.Path...); field.Kind == "CSIDriver" && d.reached[from].minor >= field.Since && !has {
			found.add("driver", Warn, "helm upgrade, or credence up again", "CSIDriver %s is without %s, which Kubernetes 1.%d has: the kubelet passes tokens of pods where it logs them",
				csiDriver, strings.Join(field.Path, "."), field.Since)
		}
	}
}

// checkKubernetes reports what Credence has less of on the version of the cluster, and returns its minor; 0 if that is not known.
func checkKubernetes(found *Diagnosis, name string, answer []byte) int {
	minor, err := minors.Of(answer)
	if err != nil {
		found.skip(name, "%v", err)
		return 0
	}
	known := minors.All()
	var less []string
	for _, feature := range known.Features {
		if on := feature.On(minor); on != nil {
			less = append(less, feature.Name+": "+on.How+", "+on.Means)
		}
	}
	problem := known.Check(minor)
	switch {
	case problem != nil:
		found.add(name, Fail, "upgrade the control plane", "%v", problem)
	case minor > known.Newest:
		found.add(name, Warn, "look for a newer version of Credence", "1.%d is newer than 1.%d, the newest that this version of Credence was tested with", minor, known.Newest)
	case len(less) > 0:
		found.pass(name, "1.%d has all but: %s", minor, strings.Join(less, "; "))
	default:
		found.pass(name, "1.%d has all that Credence uses", minor)
	}
	return minor
}

// checkClock returns by how much the clock here is ahead; 0 if that is not known.
func (d *Examination) checkClock(found *Diagnosis, name, date string) time.Duration {
	theirs, err := http.ParseTime(date)
	if err != nil {
		found.skip(name, "the API server does not tell its time")
		return 0
	}
	// The header is in whole seconds, and some time has passed on the way.
	ours := d.Now()
	skew := ours.Sub(theirs).Abs()
	const hint = "set both by NTP: tokens that seem to be issued in the future, or expired, are refused"
	switch {
	case skew > failSkew:
		found.add(name, Fail, hint, "the API server's is %s, this machine's %s", theirs.UTC().Format(time.RFC3339), ours.UTC().Format(time.RFC3339))
	case skew > warnSkew:
		found.add(name, Warn, hint, "the API server's and this machine's differ by %s", skew.Round(time.Second))
	default:
		found.pass(name, "that of the API server and this machine's agree")
	}
	return ours.Sub(theirs)
}

// checkAPIServices sees whether the cluster forwards requests to Credence's API, and returns the group versions that it does not.
func checkAPIServices(ctx context.Context, found *Diagnosis, from *cluster.API) (missing []schema.GroupVersion) {
	for _, group := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, identityv1alpha1.SchemeGroupVersion} {
		name := group.Version + "." + group.Group
		var service struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		err := from.Get(ctx, &service, cluster.Place{API: "/apis/apiregistration.k8s.io/v1", Resource: "apiservices", Name: name})
		if skipped(found, "apiservice", "get apiservices", err) {
			return missing
		}
		if err != nil {
			found.add("apiservice", Fail, "install Credence in this cluster, or choose another one by --kube-context", "%s: %v", name, err)
			missing = append(missing, group)
			continue
		}
		available := slices.IndexFunc(service.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" })
		if available < 0 || service.Status.Conditions[available].Status != metav1.ConditionTrue {
			reason := "it is not known to be available"
			if available >= 0 {
				reason = service.Status.Conditions[available].Message
			}
			found.add("apiservice", Fail, "see whether credence-server apiserver runs, and its log", "%s is not available: %s", name, reason)
			missing = append(missing, group)
			continue
		}
		if service.Status.Conditions[available].Reason == "Local" {
			found.add("apiservice", Fail, "install Credence in another cluster, or delete that CustomResourceDefinition",
				"%s is served by a CustomResourceDefinition of another project, and not by Credence", name)
			missing = append(missing, group)
			continue
		}
		found.pass("apiservice", "%s is available", name)
	}
	return missing
}

// webhookConfiguration is the part of one that is looked at.
type webhookConfiguration struct {
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
}

// checkWebhooks sees whether pods and Secrets pass Credence's webhook.
func checkWebhooks(ctx context.Context, found *Diagnosis, from *cluster.API) (pods bool) {
	covered, bare := map[string]bool{}, []string(nil)
	all := cluster.Listing{API: "/apis/admissionregistration.k8s.io/v1", Resource: "mutatingwebhookconfigurations"}
	err := cluster.Each(ctx, from, all, func(configuration *webhookConfiguration) {
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
	})
	if skipped(found, "webhook", "list mutatingwebhookconfigurations", err) {
		return true // it may be there
	}
	if err != nil {
		found.add("webhook", Fail, "", "list webhook configurations: %v", err)
		return false
	}
	for _, resource := range []string{"pods", "secrets"} {
		if !covered[resource] {
			found.add("webhook", Fail, "install Credence's webhook in the cluster of the workloads: deploy/base", "no MutatingWebhookConfiguration of Credence is for %s: they get nothing of an identity", resource)
			return covered["pods"]
		}
	}
	if len(bare) > 0 {
		found.add("webhook", Warn, "put the authority of the webhook's certificate into clientConfig.caBundle", "%s: without a caBundle the certificate must be of an authority that the API server trusts itself", wording.Some(bare))
		return true
	}
	found.pass("webhook", "pods and Secrets are sent to it")
	return true
}

// checkAdmission sends a pod through the admission of a namespace, without keeping it: a webhook that does not answer is seen in no other way.
func checkAdmission(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "credence-doctor-"}, Spec: explain.AnyPod("")}
	_, err := explain.TryPod(ctx, workload, pod, &[]string{})
	if err == nil {
		found.pass("webhook", "a pod of namespace %s passes it, in a dry run", namespace)
		return
	}
	var refusal apierrors.APIStatus
	_, byRBAC := cluster.MissingRight(err.Error())
	switch {
	case byRBAC:
		found.skip("webhook", "you may not create pods in namespace %s, so that none was sent through it", namespace)
	case errors.As(err, &refusal) && refusal.Status().Code < http.StatusInternalServerError:
		found.skip("webhook", "the rules of namespace %s refuse the doctor's pod, so that none was sent through it: %v", namespace, err)
	default:
		found.add("webhook", Fail, "see whether credence-server webhook runs, its log, and its certificate; a webhook of others that is named here has owners of its own",
			"no pod can be created in namespace %s, nor in others with the label: %v", namespace, err)
	}
}

// skipped notes a check that the user has no right to.
func skipped(found *Diagnosis, check, right string, err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusForbidden {
		return false
	}
	found.skip(check, "you may not %s", right)
	return true
}
