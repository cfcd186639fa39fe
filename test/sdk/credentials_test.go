package sdk

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/sdk/plane"
)

// granted fails the test unless the answer presents credentials of the cloud's principal, given for a token.
func (w *world) granted(t *testing.T, c cloud, got answer, token plane.Issued) {
	t.Helper()
	if got.Error != "" {
		t.Fatalf("the SDK has no credentials: %s", got.Error)
	}
	grant, known := w.sts.Session(got.Presented)
	switch {
	case !known:
		t.Fatalf("the SDK presents credentials that it was not given")
	case !strings.HasPrefix(grant.Principal, c.principal):
		t.Errorf("the credentials are those of %s, want %s", grant.Principal, c.principal)
	case grant.TokenID != token.ID || grant.KeyID != string(token.KeyID):
		t.Errorf("the credentials were given for token %s by key %s, want token %s by key %s", grant.TokenID, grant.KeyID, token.ID, token.KeyID)
	}
	if got.Region != c.region {
		t.Errorf("the SDK calls services in the region %q, want %q", got.Region, c.region)
	}
}

// What Credence puts into a pod is all that an SDK needs.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	for _, c := range clouds() {
		t.Run(c.String(), func(t *testing.T) {
			token := w.issue(t, request(c))
			pod := newPod(t, c, w.authority)
			pod.deliver(t, token.Token)
			pod.start(t)
			w.granted(t, c, pod.ask(t), token)
		})
	}
}

// Where both algorithms are accepted, each of them gives credentials: an external signer may choose the other one.
func TestBothAlgorithms(t *testing.T) {
	w := newWorld(t)
	for _, c := range clouds() {
		if c.refusals.algorithm != "" {
			continue
		}
		for _, algorithm := range []identity.Algorithm{identity.RS256, identity.ES256} {
			t.Run(c.String()+"/"+string(algorithm), func(t *testing.T) {
				asked := request(c)
				asked.TargetAlgorithm = algorithm
				token := w.issue(t, asked)
				pod := newPod(t, c, w.authority)
				pod.deliver(t, token.Token)
				pod.start(t)
				w.granted(t, c, pod.ask(t), token)
			})
		}
	}
}

// Settings that are optional have other ways through the SDKs: without a service account, Google's token is that of the pool;
// with a region, Alibaba Cloud is called there.
func TestOptionalSettings(t *testing.T) {
	w := newWorld(t)
	direct, regional := googleCloud(), alibabaCloud()
	direct.providerConfig = strings.Replace(direct.providerConfig, `,"serviceAccount":"`+googleAccount+`"`, "", 1)
	direct.principal = "principal://iam.googleapis.com/projects/112233445566/locations/global/workloadIdentityPools/credence/subject/gardener.cloud:workloadidentity:shop:cart-gcp:"
	regional.providerConfig = regional.everything()
	for _, c := range []cloud{direct, regional} {
		t.Run(c.String(), func(t *testing.T) {
			token := w.issue(t, request(c))
			pod := newPod(t, c, w.authority)
			pod.deliver(t, token.Token)
			pod.start(t)
			w.granted(t, c, pod.ask(t), token)
		})
	}
}
