package clientcertificate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/test/testkit"
)

var interactive = credential.ExecInfo{APIVersion: credential.V1, Interactive: true}

// leaf is the certificate of a credential, whose key must be its own.
func leaf(t *testing.T, c credential.Credential) *x509.Certificate {
	t.Helper()
	pair := testkit.Need(tls.X509KeyPair(c.CertificatePEM, []byte(c.KeyPEM.Reveal())))(t)
	return pair.Leaf
}

func TestCertificateAfterApproval(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Groups: []string{"ops", "developers", "ops"}, Duration: time.Hour})
	cluster.at(100*time.Second, cluster.approve)
	client := client{info: interactive}
	got := testkit.Need(client.obtain(t, source))(t)
	if len(cluster.created) != 1 {
		t.Fatalf("created %q", cluster.created)
	}
	name := cluster.created[0]
	request := cluster.requests[name].Spec
	if request.SignerName != "kubernetes.io/kube-apiserver-client" || *request.ExpirationSeconds != 3600 ||
		!slices.Equal(request.Usages, []certificatesv1.KeyUsage{"client auth", "digital signature"}) {
		t.Errorf("requested %+v", request)
	}
	certificate := leaf(t, got)
	slices.Sort(certificate.Subject.Organization)
	if certificate.Subject.CommonName != "jane" || !slices.Equal(certificate.Subject.Organization, []string{"developers", "ops"}) {
		t.Errorf("certificate for %s", certificate.Subject)
	}
	if key, ok := certificate.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("key %T", certificate.PublicKey)
	}
	// The expiry is that of the certificate itself, to the second.
	if want := noon.Add(100*time.Second + time.Hour); !got.Expires.Equal(want) || !got.Expires.Equal(certificate.NotAfter) {
		t.Errorf("expires %s, want %s", got.Expires, want)
	}
	approve := "kubectl certificate approve " + name
	want := "The request " + name + ` for a client certificate of user "jane" waits for approval. An approver runs: ` + approve + "\n" +
		"Still waiting for: " + approve + ", for 9m30s at most.\n" +
		"Still waiting for: " + approve + ", for 9m0s at most.\n" +
		"Still waiting for: " + approve + ", for 8m30s at most.\n"
	if diff := cmp.Diff(want, client.screen.text.String()); diff != "" {
		t.Error(diff)
	}
	if client.entry.State != nil {
		t.Errorf("state %s is left", client.entry.State)
	}
	if len(client.kept) != 1 || strings.Contains(client.screen.text.String(), "PRIVATE") {
		t.Errorf("kept %d states", len(client.kept))
	}
}

// The key is on disk before others can see the request: a meanwhile approved one is found by the next run.
func TestRetryFindsItsOwnRequest(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{})
	var client client
	_, err := client.obtain(t, source)
	if !errors.Is(err, credential.ErrNeedsPerson) || !strings.Contains(err.Error(), "kubectl certificate approve "+cluster.created[0]) {
		t.Fatalf("not approved: %v", err)
	}
	if waited := cluster.clock().Sub(noon); waited != clientcertificate.DefaultUnattendedWait {
		t.Errorf("waited %s", waited)
	}
	cluster.approve()
	asked := cluster.asked
	got, err := client.obtain(t, source)
	testkit.Must(t, err)
	leaf(t, got)
	if len(cluster.created) != 1 || len(client.kept) != 1 || cluster.asked != asked+1 {
		t.Errorf("created %q, %d keys, called %d times", cluster.created, len(client.kept), cluster.asked-asked)
	}
	// The next certificate has another key, and so another request.
	client.entry, client.info = nil, interactive
	cluster.at(time.Second, cluster.approve)
	next, err := client.obtain(t, source)
	if err != nil || len(cluster.created) != 2 || cluster.created[0] == cluster.created[1] || next.KeyPEM.Equal(got.KeyPEM) {
		t.Errorf("created %q, %v", cluster.created, err)
	}
}

// A run that ended between the disk and the cluster, and one that does not know that its request arrived.
func TestInterruptedCreation(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{})
	cluster.failure = &metav1.Status{Code: 503, Message: "starting", Reason: metav1.StatusReasonServiceUnavailable}
	var client client
	if _, err := client.obtain(t, source); err == nil || errors.Is(err, credential.ErrRefused) || errors.Is(err, credential.ErrNeedsPerson) {
		t.Fatalf("not an outage: %v", err)
	}
	if len(client.kept) != 1 || client.entry.State == nil {
		t.Fatal("no key is kept")
	}
	cluster.failure = nil
	cluster.at(2*time.Second, cluster.approve)
	if _, err := client.obtain(t, source); err != nil || len(client.kept) != 1 || len(cluster.created) != 1 {
		t.Errorf("created %q with %d keys, %v", cluster.created, len(client.kept), err)
	}
}

func TestWhatEndsARequest(t *testing.T) {
	cases := map[string]struct {
		prepare func(*cluster)
		want    string
		refused bool
		// again: the next run makes another request.
		again bool
	}{
		"denied": {func(c *cluster) {
			c.at(time.Minute, func() { c.decide(certificatesv1.CertificateDenied, "Unknown", "who is \x1b[31mjane?") })
		}, "was denied (Unknown: who is \ufffd[31mjane?)", true, true},
		"failed": {func(c *cluster) {
			c.at(time.Minute, func() { c.decide(certificatesv1.CertificateFailed, "SignerValidationFailure", "usages") })
		}, "could not sign the request", true, true},
		"deleted": {func(c *cluster) { c.at(time.Minute, func() { clear(c.requests) }) }, "was deleted while it waited", true, true},
		"never signed": {func(c *cluster) {
			c.idle = true
			c.at(time.Minute, c.approve)
		}, "is approved, but signer kubernetes.io/kube-apiserver-client has not signed it", false, false},
		"the right is taken away": {func(c *cluster) {
			c.at(time.Minute, func() {
				c.failure = &metav1.Status{Code: 403, Message: `User "asker" cannot get resource`, Reason: metav1.StatusReasonForbidden}
			})
		}, `user "asker" of the kubeconfig needs the verb "get" on "certificatesigningrequests.certificates.k8s.io"`, true, false},
		"an outage to the end": {func(c *cluster) {
			c.at(time.Minute, func() { c.failure = &metav1.Status{Code: 500, Message: "etcd"} })
		}, "cannot answer (500): etcd", false, false},
		"another key": {func(c *cluster) {
			other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				c.t.Fatal(err)
			}
			c.change = func(x *x509.Certificate) { x.PublicKey = &other.PublicKey }
			c.at(time.Minute, c.approve)
		}, "for another key", true, true},
		"another user": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.Subject.CommonName = "joe" }
			c.at(time.Minute, c.approve)
		}, `the request was for user "jane"`, true, true},
		"one more group": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.Subject.Organization = []string{"developers", "admins"} }
			c.at(time.Minute, c.approve)
		}, `the request was for user "jane" with groups ["developers"]`, true, true},
		"no client": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
			c.at(time.Minute, c.approve)
		}, "without the usage client auth", true, true},
		"an authority": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.IsCA = true }
			c.at(time.Minute, c.approve)
		}, "of an authority", true, true},
		"may not sign": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.KeyUsage = x509.KeyUsageKeyEncipherment }
			c.at(time.Minute, c.approve)
		}, "may not sign", true, true},
		"not yet": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.NotBefore = c.now.Add(time.Hour) }
			c.at(time.Minute, c.approve)
		}, "not valid yet, but from", false, false},
		"no longer": {func(c *cluster) {
			c.change = func(x *x509.Certificate) { x.NotAfter = c.now.Add(-time.Second) }
			c.at(time.Minute, c.approve)
		}, "no longer valid since", false, true},
		"no PEM": {func(c *cluster) {
			c.answer = []byte("hello")
			c.at(time.Minute, c.approve)
		}, "no certificate in PEM", true, true},
		"a key": {func(c *cluster) {
			c.answer = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("geheim")})
			c.at(time.Minute, c.approve)
		}, "where a certificate was expected", true, true},
		"masters": {func(c *cluster) {}, "not allowed", true, false},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			cluster := newCluster(t)
			c.prepare(cluster)
			settings := clientcertificate.Settings{Groups: []string{"developers"}}
			if what == "masters" {
				settings.Groups = []string{"system:masters"}
			}
			client := client{info: interactive}
			got, err := client.obtain(t, cluster.source(settings))
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, credential.ErrRefused) != c.refused || errors.Is(err, credential.ErrNeedsPerson) {
				t.Errorf("got %v (refused %t), want %q", err, errors.Is(err, credential.ErrRefused), c.want)
			}
			if err != nil && strings.Contains(err.Error(), "geheim") {
				t.Error("a secret is in the error")
			}
			if len(got.CertificatePEM) > 0 || !got.KeyPEM.IsZero() {
				t.Error("something is returned")
			}
			if forgotten := client.entry.State == nil; forgotten != c.again {
				t.Errorf("state forgotten: %t", forgotten)
			}
		})
	}
}

func TestMomentWithoutTheClusterDoesNotEndTheWait(t *testing.T) {
	cluster := newCluster(t)
	cluster.at(10*time.Second, func() { cluster.failure = &metav1.Status{Code: 503, Message: "restarting"} })
	cluster.at(20*time.Second, func() { cluster.failure = nil })
	cluster.at(30*time.Second, cluster.approve)
	client := client{info: interactive}
	testkit.Must(t, testkit.Err(client.obtain(t, cluster.source(clientcertificate.Settings{}))))
	if shown := client.screen.text.String(); strings.Count(shown, "trying again") != 1 {
		t.Errorf("shown %q", shown)
	}
}

func TestApprovalIsTold(t *testing.T) {
	cluster := newCluster(t)
	cluster.idle = true
	cluster.at(10*time.Second, cluster.approve)
	cluster.at(20*time.Second, func() {
		for _, request := range cluster.requests {
			cluster.sign(request)
		}
	})
	client := client{info: interactive}
	testkit.Must(t, testkit.Err(client.obtain(t, cluster.source(clientcertificate.Settings{}))))
	if shown := client.screen.text.String(); strings.Count(shown, "is approved. Waiting for signer kubernetes.io/kube-apiserver-client.\n") != 1 {
		t.Errorf("shown %q", shown)
	}
}

// A valid certificate is served while the request for the next one waits.
func TestRenewalBeforeTheEnd(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	cluster.at(time.Second, cluster.approve)
	client := client{info: interactive}
	first, err := client.obtain(t, source)
	testkit.Must(t, err)
	cluster.advance(51 * time.Minute)
	pauses := cluster.pauses
	again, err := client.obtain(t, source)
	if err != nil || !again.KeyPEM.Equal(first.KeyPEM) || !again.Expires.Equal(first.Expires) {
		t.Fatalf("the certificate that works is not served: %v", err)
	}
	if !strings.Contains(client.screen.text.String(), "kubectl certificate approve "+cluster.created[1]) || cluster.pauses != pauses {
		t.Errorf("shown %q after %d pauses", client.screen.text.String(), cluster.pauses-pauses)
	}
	cluster.approve()
	second, err := client.obtain(t, source)
	if err != nil || second.KeyPEM.Equal(first.KeyPEM) || !second.Expires.After(first.Expires) || len(cluster.created) != 2 {
		t.Errorf("not renewed: %v, created %q", err, cluster.created)
	}
	if client.entry.State != nil {
		t.Error("a state is left")
	}
	// One that the server refuses, or that a person wants anew, is waited for.
	client.refused = true
	cluster.advance(55 * time.Minute)
	cluster.at(time.Minute, cluster.approve)
	third, err := client.obtain(t, source)
	if err != nil || third.KeyPEM.Equal(second.KeyPEM) || len(cluster.created) != 3 {
		t.Errorf("refused, and not replaced: %v", err)
	}
	client.refused = false
	cluster.at(time.Minute, cluster.approve)
	fourth, err := client.obtain(t, source)
	if err != nil || fourth.KeyPEM.Equal(third.KeyPEM) {
		t.Errorf("wanted anew, and not replaced: %v", err)
	}
}

// Approved on Friday, and requested again on Monday.
func TestCertificateThatWasNeverFetchedInTime(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	client := client{info: interactive}
	if _, err := client.obtain(t, source); !errors.Is(err, credential.ErrNeedsPerson) {
		t.Fatal(err)
	}
	cluster.approve()
	cluster.advance(48 * time.Hour)
	cluster.at(time.Minute, cluster.approve)
	got, err := client.obtain(t, source)
	if err != nil || !got.Expires.After(cluster.clock()) || len(cluster.created) != 2 {
		t.Errorf("got one until %s, %v; created %q", got.Expires, err, cluster.created)
	}
}

func TestRequestOfSomebodyElse(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{})
	var client client
	if _, err := client.obtain(t, source); !errors.Is(err, credential.ErrNeedsPerson) {
		t.Fatal(err)
	}
	mine := cluster.requests[cluster.created[0]]
	other := newCluster(t)
	another := another{}
	if _, err := another.obtain(t, other.source(clientcertificate.Settings{})); !errors.Is(err, credential.ErrNeedsPerson) {
		t.Fatal(err)
	}
	mine.Spec.Request = other.requests[other.created[0]].Spec.Request
	cluster.approve()
	if _, err := client.obtain(t, source); !errors.Is(err, credential.ErrRefused) || !strings.Contains(err.Error(), "another than the one that was made here") {
		t.Errorf("taken: %v", err)
	}
}

// another is a client by another name than that of a variable.
type another = client

func TestClientThatGoesAway(t *testing.T) {
	cluster := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cluster.at(4*time.Second, cancel)
	_, state, err := cluster.source(clientcertificate.Settings{}).Obtain(ctx, credential.Request{ExecInfo: interactive, Terminal: &screen{}, Keep: func(json.RawMessage) error { return nil }})
	if !errors.Is(err, context.Canceled) || state == nil || string(state) == "null" {
		t.Errorf("got %v; state is kept: %t", err, state != nil)
	}
}

func TestClusterThatCannotBeReached(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{})
	cluster.server.Close()
	var client client
	if _, err := client.obtain(t, source); err == nil || errors.Is(err, credential.ErrRefused) || errors.Is(err, credential.ErrNeedsPerson) {
		t.Errorf("not an outage: %v", err)
	}
	if client.entry.State == nil {
		t.Error("the key is thrown away")
	}
}

func TestStatusesAreClassified(t *testing.T) {
	for code, refused := range map[int32]bool{400: true, 401: true, 403: true, 404: true, 409: true, 422: true, 408: false, 429: false, 500: false, 502: false, 503: false, 504: false} {
		cluster := newCluster(t)
		cluster.failure = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Message: http.StatusText(int(code))}
		var client client
		_, err := client.obtain(t, cluster.source(clientcertificate.Settings{}))
		if err == nil || errors.Is(err, credential.ErrRefused) != refused || !strings.Contains(err.Error(), cluster.server.URL) {
			t.Errorf("%d: refused must be %t: %v", code, refused, err)
		}
		if cluster.asked != 1 {
			t.Errorf("%d: called %d times", code, cluster.asked)
		}
	}
}
