package e2e_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// reviewURL is where the API server sends the reviews of a webhook of a configuration.
func (p plane) reviewURL(t *testing.T, webhook string) string {
	t.Helper()
	url := p.must(t, "", "kubectl", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", `jsonpath={.items[*].webhooks[?(@.name=="`+webhook+`")].clientConfig.url}`)
	if url == "" {
		t.Fatalf("there is no webhook %s", webhook)
	}
	return url
}

// madeUp is a review that no API server has sent: of a pod with an account.
func madeUp(namespace, account, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"made-up","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":%q,
		"userInfo":{"username":"jane"},"object":{"apiVersion":"v1","kind":"Pod","spec":{"serviceAccountName":%q,"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":%q}},"containers":[{"name":"iis"}]}}}}`, namespace, account, spec)
}

// stranger returns a client that trusts the plane's authority, with a certificate of the folder pki if one is named.
func (p plane) stranger(t *testing.T, certificate string) *http.Client {
	t.Helper()
	authority := need(os.ReadFile(filepath.Join(p.Dir, "ca.crt")))(t)
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(authority)
	if certificate != "" {
		file := filepath.Join(p.Dir, "pki", certificate)
		pair := need(tls.LoadX509KeyPair(file+".crt", file+".key"))(t)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Minute}
}

// send returns what a review is answered; an error is a connection that was refused.
func send(t *testing.T, client *http.Client, url, review string) (code int, body string, err error) {
	t.Helper()
	response, err := client.Post(url, "application/json", strings.NewReader(review))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// On a plane the webhook answers the API server alone: no program of this machine, and no other component, gets contents or learns
// who may use which account.
func TestReviewsOfOthersAreNotAnswered(t *testing.T) {
	inTurn(t)
	namespace, spec := shared.credentialSpecs(t, "mine")
	for _, webhook := range []string{"expander.gmsa.credence.dev", "authorizer.gmsa.credence.dev"} {
		url := shared.reviewURL(t, webhook)
		for who, certificate := range map[string]string{"no client": "", "the agent": "agent/client", "a server": "discovery/tls"} {
			code, body, err := send(t, shared.stranger(t, certificate), url, madeUp(namespace, "default", spec("mine")))
			if err == nil {
				t.Errorf("%s: %s is answered HTTP %d: %s", webhook, who, code, body)
			}
		}
		code, body, err := send(t, shared.stranger(t, "webhook/caller"), url, madeUp(namespace, "default", spec("mine")))
		if err != nil || code != http.StatusOK {
			t.Errorf("%s: the API server's certificate: HTTP %d, %v", webhook, code, err)
		}
		var review map[string]any
		if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&review); err != nil {
			t.Errorf("%s: %v: %s", webhook, err, body)
		}
	}
}

// Where the API server has no certificate to show, reviews are answered at paths that the webhook makes up itself, and the webhook
// can change nothing else of its configurations.
func reviewsAtSecretPaths(t *testing.T, p plane) {
	namespace, spec := p.credentialSpecs(t, "mine")
	pods := p.client(t).CoreV1().Pods(namespace)
	stranger := p.stranger(t, "")
	const expander = "expander.gmsa.credence.dev"
	review := madeUp(namespace, "default", spec("mine"))
	first := p.reviewURL(t, expander)
	base := first[:strings.Index(first, "/mutate")]
	base = base[:strings.LastIndex(base, "/")]
	for _, path := range []string{"/mutate", "/validate", "/" + strings.Repeat("A", 43) + "/mutate", "/"} {
		if code, body, err := send(t, stranger, base+path, review); err != nil || code != http.StatusNotFound || strings.Contains(body, "WebApplication1") {
			t.Errorf("%s: HTTP %d %s, %v", path, code, body, err)
		}
	}
	// Pods are admitted all the time that paths are replaced, and an old one is worth nothing in the end.
	eventually(t, func() error {
		if _, err := pods.Create(t.Context(), windowsPod(gmsaOf(spec("mine"), "")), dryRun); err != nil {
			return fatal{err}
		}
		if now := p.reviewURL(t, expander); now == first {
			return errors.New("the path was not replaced")
		}
		if code, _, err := send(t, stranger, first, review); err != nil || code != http.StatusNotFound {
			return fmt.Errorf("the path of before is answered: HTTP %d, %w", code, err)
		}
		return nil
	})

	webhook := rest.CopyConfig(p.config(t))
	webhook.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:credence-system:credence-webhook", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	client := need(kubernetes.NewForConfig(webhook))(t)
	configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	for name, change := range map[string]func(*registrationv1.MutatingWebhookConfiguration){
		"another address": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.URL = ptr.To("https://127.0.0.1:1/mutate")
		},
		"a service": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig = registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{Name: "x", Namespace: "y"}}
		},
		"another authority": func(c *registrationv1.MutatingWebhookConfiguration) { c.Webhooks[0].ClientConfig.CABundle = nil },
		"other objects": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].Rules[0].Resources = []string{"secrets"}
		},
		"failing open": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = ptr.To(registrationv1.Ignore)
		},
		"another namespace": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
		"no conditions": func(c *registrationv1.MutatingWebhookConfiguration) { c.Webhooks[0].MatchConditions = nil },
		"one more": func(c *registrationv1.MutatingWebhookConfiguration) {
			w := *c.Webhooks[0].DeepCopy()
			w.Name = "more.example.com"
			c.Webhooks = append(c.Webhooks, w)
		},
		"none":               func(c *registrationv1.MutatingWebhookConfiguration) { c.Webhooks = nil },
		"a label":            func(c *registrationv1.MutatingWebhookConfiguration) { c.Labels = map[string]string{"a": "b"} },
		"another annotation": func(c *registrationv1.MutatingWebhookConfiguration) { c.Annotations["a"] = "b" },
		"an owner": func(c *registrationv1.MutatingWebhookConfiguration) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "x", UID: "y"}}
		},
	} {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a path may have been replaced in between
			configuration := need(configurations.Get(t.Context(), "zz-credence-gmsa", metav1.GetOptions{}))(t)
			change(configuration)
			return errOf(configurations.Update(t.Context(), configuration, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))
		})
		refused(t, name, err, "credence-review-paths")
	}
	if err := configurations.Delete(t.Context(), "zz-credence-gmsa", metav1.DeleteOptions{}); err == nil {
		t.Error("it may delete a configuration")
	}
}
