package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// trust is the configuration by which another cluster accepts tokens of workload identities.
const trust = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [second-cluster]
    certificateAuthority: |
%s
  claimMappings:
    username:
      claim: sub
      prefix: "workload:"
anonymous:
  enabled: true
  conditions:
  - path: /readyz
`

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// secondCluster starts a control plane that trusts the plane's issuer, and returns its admin configuration.
func (p plane) secondCluster(t *testing.T) *rest.Config {
	t.Helper()
	dir := t.TempDir()
	ca := need(os.ReadFile(p.CAFile))(t)
	configuration := filepath.Join(dir, "trust.yaml")
	must(t, os.WriteFile(configuration, fmt.Appendf(nil, trust, p.Issuer, indent(string(ca), "      ")), 0o600))
	return startCluster(t, filepath.Join(dir, "cluster"), "--port", "0", "--authentication-config", configuration).Admin
}

// whoami returns the user that a cluster takes the bearer of a token for.
func whoami(t *testing.T, cluster *rest.Config, token string) (string, error) {
	t.Helper()
	return bearer(t.Context(), cluster, token)
}

func bearer(ctx context.Context, cluster *rest.Config, token string) (string, error) {
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// foreign signs the claims of a token anew with a key that the issuer never published, under a kid of its choice.
func foreign(t *testing.T, token, keyID string) string {
	t.Helper()
	key := need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return resign(t, token, key, keyID, func(map[string]any) {})
}

// genuine signs changed claims with the very key of the token, taken from the plane's folder.
func genuine(t *testing.T, token string, change func(map[string]any)) string {
	t.Helper()
	header, _ := claims(t, token)
	content := need(os.ReadFile(filepath.Join(shared.Dir, "keys", header.KeyID+".pem")))(t)
	block, _ := pem.Decode(content)
	key := need(x509.ParsePKCS8PrivateKey(block.Bytes))(t)
	return resign(t, token, key.(*ecdsa.PrivateKey), header.KeyID, change)
}

func resign(t *testing.T, token string, key *ecdsa.PrivateKey, keyID string, change func(map[string]any)) string {
	t.Helper()
	signer := need(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: keyID}}, nil))(t)
	_, c := claims(t, token)
	change(c)
	return need(jwt.Signed(signer).Claims(c).Serialize())(t)
}

func TestPlaneAnotherClusterAcceptsTheToken(t *testing.T) {
	withCluster(t)
	namespace := shared.namespace(t)
	cluster := shared.secondCluster(t)
	for _, target := range []string{"kubernetes", "aws"} {
		wi := shared.create(t, namespace, target, target, "second-cluster")
		good := token(t, shared.config(t), namespace, target, `{}`).Status.Token
		name, err := whoami(t, cluster, good)
		if err != nil {
			t.Fatalf("%s: the second cluster refused the token: %v", target, err)
		}
		if want := "workload:" + wi.Status.Sub; name != want {
			t.Errorf("%s: the second cluster sees %q, want %q", target, name, want)
		}
	}
	shared.create(t, namespace, "other", "aws", "another-audience")
	good := token(t, shared.config(t), namespace, "aws", `{}`).Status.Token
	header, _ := claims(t, good)
	must(t, errOf(whoami(t, cluster, genuine(t, good, func(map[string]any) {}))), "the same claims signed by the test with the same key")
	for name, bad := range map[string]string{
		"wrong audience":           token(t, shared.config(t), namespace, "other", `{}`).Status.Token,
		"expired":                  genuine(t, good, func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }),
		"foreign key, unknown kid": foreign(t, good, "unknown"),
		"foreign key, our kid":     foreign(t, good, header.KeyID),
		"tampered signature":       good[:len(good)-4] + "AAAA",
	} {
		if who, err := whoami(t, cluster, bad); err == nil {
			t.Errorf("%s: the second cluster took the bearer for %q", name, who)
		}
	}
}

func TestTheHostClusterRefusesTheToken(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.create(t, namespace, "one", "kubernetes", "https://kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc")
	issued := token(t, shared.config(t), namespace, "one", `{}`).Status.Token
	if who, err := whoami(t, shared.config(t), issued); err == nil {
		t.Errorf("the cluster that hosts Credence took the bearer for %q", who)
	}
	review := need(shared.client(t).AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: issued},
	}, metav1.CreateOptions{}))(t)
	if review.Status.Authenticated {
		t.Errorf("TokenReview of the host cluster: %+v", review.Status.User)
	}
}

// publicClient trusts the plane's CA and nothing else.
func (p plane) publicClient(t *testing.T) *http.Client {
	t.Helper()
	ca := need(os.ReadFile(p.CAFile))(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("no certificate in %s", p.CAFile)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func TestOIDCLibraryAcceptsTheToken(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	ctx := oidc.ClientContext(t.Context(), shared.publicClient(t))
	provider, err := oidc.NewProvider(ctx, shared.Issuer)
	must(t, err, "discovery")
	for _, target := range []string{"generic", "gcp"} {
		wi := shared.create(t, namespace, target, target, "relying-party", "someone-else")
		issued := token(t, shared.config(t), namespace, target, `{}`).Status.Token
		verified, err := provider.Verifier(&oidc.Config{ClientID: "relying-party"}).Verify(ctx, issued)
		must(t, err, target)
		if diff := cmp.Diff([]string{"relying-party", "someone-else"}, verified.Audience); diff != "" || verified.Subject != wi.Status.Sub {
			t.Errorf("%s: subject %q, audiences (-want +got):\n%s", target, verified.Subject, diff)
		}
		if _, err := provider.Verifier(&oidc.Config{ClientID: "third-party"}).Verify(ctx, issued); err == nil {
			t.Errorf("%s: accepted for another audience", target)
		}
		late := func() time.Time { return time.Now().Add(2 * time.Hour) }
		if _, err := provider.Verifier(&oidc.Config{ClientID: "relying-party", Now: late}).Verify(ctx, issued); err == nil {
			t.Errorf("%s: accepted an hour after expiry", target)
		}
		header, _ := claims(t, issued)
		if _, err := provider.Verifier(&oidc.Config{ClientID: "relying-party"}).Verify(ctx, foreign(t, issued, header.KeyID)); err == nil {
			t.Errorf("%s: accepted with the signature of a stranger", target)
		}
	}
}

func TestDocumentsHoldWhatTheRingHas(t *testing.T) {
	inTurn(t)
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	got := need(shared.publicClient(t).Get(shared.JWKS))(t)
	defer got.Body.Close()
	must(t, json.NewDecoder(got.Body).Decode(&set))
	count := map[string]int{}
	for _, key := range set.Keys {
		count[key["alg"]]++
		if key["d"] != "" {
			t.Errorf("key %s is published with its private part", key["kid"])
		}
	}
	expect(t, same(map[string]int{"RS256": 2, "ES256": 2}, count), "published keys by algorithm, one that signs and one spare each")
}
