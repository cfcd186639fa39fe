package membership_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/test/testkit"
)

// tokenOf is a token without a signature.
func tokenOf(account string, issued time.Time) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:%s","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":"east","uid":"u"}}}`,
		account, issued.Unix(), issued.Add(membership.Lifetime).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// accounts issue tokens by a clock, or fail while err is set.
type accounts struct {
	clock *testingclock.FakeClock
	err   error
	asked []authenticationv1.TokenRequestSpec
}

func (a *accounts) CreateToken(_ context.Context, account string, request *authenticationv1.TokenRequest, _ metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	a.asked = append(a.asked, request.Spec)
	if a.err != nil {
		return nil, a.err
	}
	request.Status.Token = tokenOf("workload-clusters:"+account, a.clock.Now())
	return request, nil
}

// inFolder and inSecret are stores with one token, and return the one that they have then.
func inFolder(t *testing.T, token string) (membership.Store, func() string) {
	folder := t.TempDir()
	file := filepath.Join(folder, "agent.token")
	testkit.Must(t, os.WriteFile(file, []byte(token), 0o600))
	return membership.Folder(folder), func() string {
		content := testkit.Need(os.ReadFile(file))(t)
		return string(content)
	}
}

func inSecret(t *testing.T, token string) (membership.Store, func() string) {
	secrets := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "credence-system", Name: membership.SecretName},
		Data:       map[string][]byte{"agent.token": []byte(token), "agent.kubeconfig": []byte("{}")},
	}).CoreV1().Secrets("credence-system")
	return membership.Secret{Secrets: secrets}, func() string {
		secret, err := secrets.Get(t.Context(), membership.SecretName, metav1.GetOptions{})
		if err != nil || string(secret.Data["agent.kubeconfig"]) != "{}" {
			t.Fatalf("%v, %v", secret, err)
		}
		return string(secret.Data["agent.token"])
	}
}

// A token is renewed when a quarter of its life is over, bound to the same Secret, and stays while it can't be.
func TestKeeper(t *testing.T) {
	for name, of := range map[string]func(*testing.T, string) (membership.Store, func() string){"folder": inFolder, "secret": inSecret} {
		t.Run(name, func(t *testing.T) { keeps(t, of) })
	}
}

func keeps(t *testing.T, of func(*testing.T, string) (membership.Store, func() string)) {
	start := time.Unix(1_800_000_000, 0)
	fake := &accounts{clock: testingclock.NewFakeClock(start)}
	store, stored := of(t, tokenOf("workload-clusters:east-agent", start))
	issued := func() time.Time {
		token := testkit.Need(membership.Parse(stored()))(t)
		return token.Issued
	}
	keeper := &membership.Keeper{Accounts: fake, Store: store, Clock: fake.clock, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- keeper.Run(ctx) }()
	looked := func() {
		t.Helper()
		testkit.Eventually(t, "the keeper has looked", fake.clock.HasWaiters)
	}
	looked()
	if len(fake.asked) != 0 {
		t.Fatalf("a token that is not due was renewed: %+v", fake.asked)
	}
	fake.err = errors.New("away")
	fake.clock.Step(membership.Lifetime / 4)
	looked()
	if len(fake.asked) != 1 || !issued().Equal(start) {
		t.Fatalf("%d requests, the token was issued at %s: want one that failed", len(fake.asked), issued())
	}
	if spec := fake.asked[0]; *spec.ExpirationSeconds != 172800 || spec.BoundObjectRef == nil || spec.BoundObjectRef.Kind != "Secret" || spec.BoundObjectRef.Name != "east" || spec.BoundObjectRef.UID != "u" {
		t.Errorf("requested %+v", spec)
	}
	fake.err = nil
	fake.clock.Step(5 * time.Minute)
	looked()
	if !issued().After(start) {
		t.Errorf("the token was issued at %s, want a new one", issued())
	}
	cancel()
	testkit.Expect(t, <-done)
}

// A token that a cluster got by joining again is not replaced by one of before.
func TestReplacedMeanwhile(t *testing.T) {
	store, stored := inSecret(t, "new")
	if err := store.Replace(t.Context(), "agent.token", "old", "renewed"); err == nil || stored() != "new" {
		t.Errorf("%v, and the token is %q", err, stored())
	}
}

// Only tokens of joined clusters are read as such.
func TestParse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	if token, err := membership.Parse(tokenOf("workload-clusters:east-agent", now) + "\n"); err != nil || token.Account != "east-agent" || token.Secret.Name != "east" || token.Due(now) {
		t.Errorf("%+v, %v", token, err)
	}
	for _, other := range []string{"", "a.b", "a.b.c", "e30.e30.e30", "e30.bnVsbA.x", tokenOf("shop:cart", now), tokenOf("workload-clusters:", now)} {
		if token, err := membership.Parse(other); err == nil {
			t.Errorf("%q is %+v", other, token)
		}
	}
}
