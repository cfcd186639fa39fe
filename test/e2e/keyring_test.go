package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

const ringPath = "/apis/identity.credence.dev/v1alpha1/keyrings/workload-identities"

func commandJSON(kind, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":%q,"spec":%s}`, kind, spec)
}

func rotate(t *testing.T, config *rest.Config, query, spec string) response {
	t.Helper()
	return do(t, config, "POST", ringPath+"/rotation"+query, "application/json", commandJSON("KeyRotation", spec))
}

func revoke(t *testing.T, config *rest.Config, query, spec string) response {
	t.Helper()
	return do(t, config, "POST", ringPath+"/revocation"+query, "application/json", commandJSON("KeyRevocation", spec))
}

// key returns the first key of an algorithm and a state.
func key(t *testing.T, ring v1alpha1.KeyRing, algorithm, state string) v1alpha1.KeyStatus {
	t.Helper()
	for _, key := range ring.Status.Keys {
		if key.Algorithm == algorithm && key.State == state {
			return key
		}
	}
	t.Fatalf("no %s key is %s: %+v", algorithm, state, ring.Status.Keys)
	return v1alpha1.KeyStatus{}
}

func TestKeyRingTellsOfTheKeys(t *testing.T) {
	inTurn(t)
	var ring v1alpha1.KeyRing
	eventually(t, func() error {
		if ring = shared.keyRing(t); ring.Status.Settings == nil {
			return fmt.Errorf("no status yet")
		}
		return nil
	})
	var states []string
	for _, key := range ring.Status.Keys {
		states = append(states, key.Algorithm+" "+key.State)
	}
	expect(t, same([]string{"RS256 active", "RS256 spare", "ES256 active", "ES256 spare"}, states), "keys")
	if !meta.IsStatusConditionTrue(ring.Status.Conditions, "Ready") || !meta.IsStatusConditionTrue(ring.Status.Conditions, "Rotating") {
		t.Errorf("conditions: %+v", ring.Status.Conditions)
	}
	spare := key(t, ring, "ES256", "spare")
	if wait := spare.ReadyAt.Sub(spare.PublishedAt.Time); wait != 28*time.Hour+time.Minute {
		t.Errorf("a spare waits for %s, want a day, what replicas may be late, and twice what clocks may be wrong", wait)
	}
	if ring.Status.Issuer != shared.Issuer || ring.Status.NextChange == nil || len(ring.Status.Next) != 2 {
		t.Errorf("status: %+v", ring.Status)
	}
	if content, err := json.Marshal(ring); err != nil || strings.Contains(string(content), "PRIVATE") {
		t.Errorf("a KeyRing shows a private key: %s, %v", content, err)
	}
	table := shared.must(t, "", "kubectl", "get", "keyrings")
	expect(t, lacks(table, "NAME", "READY", "ROTATING", "KEYS", "SIGNING", "NEXT CHANGE", "AGE", "workload-identities", "True", "OnTime", "RS256="+key(t, ring, "RS256", "active").ID[:8]), "kubectl get keyrings")
	shared.must(t, "", "kubectl", "wait", "--for=condition=Ready", "keyring/workload-identities", "--timeout=5m")
	if out := shared.must(t, "", "kubectl", "explain", "keyring.status.keys.lastExpiry"); !strings.Contains(out, "of any token that a retiring key has") {
		t.Errorf("kubectl explain prints:\n%s", out)
	}
}

// Users who may see the keys may not change them, and none of the cluster's own roles may do either.
func TestKeyRingIsProtected(t *testing.T) {
	inTurn(t)
	client := shared.client(t).RbacV1().ClusterRoleBindings()
	bind := func(name, role string) {
		need(client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: name}},
		}, metav1.CreateOptions{}))(t)
		t.Cleanup(func() { shared.must(t, "", "kubectl", "delete", "clusterrolebinding", name) })
	}
	bind("e2e-key-viewer", "credence:keyrings:viewer")
	bind("e2e-key-operator", "credence:keyrings:operator")
	bind("e2e-admin", "admin")
	patch := func(user string) int {
		return do(t, shared.as(t, user), "PATCH", ringPath+"?dryRun=All", "application/merge-patch+json", `{"spec":{"relyingParties":[{"name":"bank"}]}}`).Code
	}
	status := func(user string) int {
		return do(t, shared.as(t, user), "PATCH", ringPath+"/status?dryRun=All", "application/merge-patch+json", `{"status":{"issuer":"https://evil.example"}}`).Code
	}
	type verdicts struct{ Get, Rotate, Revoke, Patch, Status int }
	for user, want := range map[string]verdicts{
		"e2e-key-viewer":   {200, 403, 403, 403, 403},
		"e2e-key-operator": {200, 201, 201, 200, 403},
		"e2e-admin":        {403, 403, 403, 403, 403},
		"e2e-plain":        {403, 403, 403, 403, 403},
	} {
		eventually(t, func() error {
			config := shared.as(t, user)
			spare := key(t, shared.keyRing(t), "ES256", "spare").ID
			got := verdicts{
				do(t, config, "GET", ringPath, "", "").Code,
				rotate(t, config, "?dryRun=All", `{"algorithm":"ES256"}`).Code,
				revoke(t, config, "?dryRun=All", fmt.Sprintf(`{"key":%q,"reason":"a test"}`, spare)).Code,
				patch(user), status(user),
			}
			if diff := cmp.Diff(want, got); diff != "" { // bindings take a moment
				return fmt.Errorf("%s (-want +got):\n%s", user, diff)
			}
			return nil
		})
	}
	for _, method := range []string{"DELETE", "POST"} {
		path := ringPath
		if method == "POST" {
			path = strings.TrimSuffix(ringPath, "/workload-identities")
		}
		expect(t, do(t, shared.config(t), method, path, "application/json", `{"apiVersion":"identity.credence.dev/v1alpha1","kind":"KeyRing","metadata":{"name":"another"}}`).is(405), fmt.Sprintf("%s of a KeyRing", method))
	}
}

func TestBadKeyCommands(t *testing.T) {
	inTurn(t)
	admin := shared.config(t)
	ring := shared.keyRing(t)
	spare := key(t, ring, "RS256", "spare").ID
	for name, c := range map[string]struct {
		got   response
		code  int
		words []string
	}{
		"too young":         {rotate(t, admin, "", `{"algorithm":"RS256","now":true}`), 409, []string{"TooYoung", spare, "may sign from"}},
		"no algorithm":      {rotate(t, admin, "", `{}`), 422, []string{"spec.algorithm", "RS256", "ES256"}},
		"unknown algorithm": {rotate(t, admin, "", `{"algorithm":"none"}`), 422, []string{"spec.algorithm"}},
		"another active":    {rotate(t, admin, "", fmt.Sprintf(`{"algorithm":"RS256","activeKey":%q}`, spare)), 409, []string{"AlreadyDone"}},
		"misspelt":          {rotate(t, admin, "", `{"algorithm":"RS256","nwo":true}`), 400, []string{"nwo"}},
		"twice":             {rotate(t, admin, "", `{"algorithm":"RS256","algorithm":"ES256"}`), 400, []string{"duplicate"}},
		"long reason":       {rotate(t, admin, "", `{"algorithm":"RS256","reason":"`+strings.Repeat("x", 257)+`"}`), 422, []string{"256"}},
		"no reason":         {revoke(t, admin, "", fmt.Sprintf(`{"key":%q}`, spare)), 422, []string{"spec.reason"}},
		"no key":            {revoke(t, admin, "", `{"reason":"leaked"}`), 422, []string{"spec.key"}},
		"not a key":         {revoke(t, admin, "", `{"key":"../../etc/passwd","reason":"leaked"}`), 422, []string{"spec.key"}},
		"not ours":          {revoke(t, admin, "", fmt.Sprintf(`{"key":%q,"reason":"leaked"}`, strings.Repeat("A", 43))), 404, []string{"not in the ring"}},
		"another ring": {do(t, admin, "POST", strings.Replace(ringPath, "workload-identities", "others", 1)+"/rotation", "application/json",
			commandJSON("KeyRotation", `{"algorithm":"RS256"}`)), 404, []string{"others"}},
	} {
		expect(t, c.got.is(c.code, c.words...), name)
	}
	expect(t, same(ring.Status.Keys, shared.keyRing(t).Status.Keys), "what was refused has changed the keys")
}

// TestPlaneRevocation goes through the drill: the key goes at once, tokens are answered 503 while no relying party can know the spare, and
// come back when refusals are accepted.
func TestPlaneRevocation(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	admin := p.config(t)
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "team")
	issued := token(t, admin, namespace, "one", `{}`).Status.Token
	header, _ := claims(t, issued)
	// A Secret with a token that the other algorithm signs, which the revocation below does not concern, and one that it does.
	p.enable(t, namespace)
	p.letAgent(t, namespace)
	for _, name := range []string{"one", "two"} {
		need(p.client(t).CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret(name, namespace, name), metav1.CreateOptions{}))(t)
	}
	_, before := p.awaitToken(t, namespace, "one", nil)
	eventually(t, func() error {
		if p.keyRing(t).Status.Settings == nil {
			return fmt.Errorf("no status yet")
		}
		return nil
	})

	answer := revoke(t, admin, "", fmt.Sprintf(`{"key":%q,"reason":"seen in a log"}`, header.KeyID))
	var revocation v1alpha1.KeyRevocation
	if err := json.Unmarshal(answer.Body, &revocation); err != nil || answer.Code != 201 {
		t.Fatalf("revoke: %d %s, %v", answer.Code, answer.Body, err)
	}
	if s := revocation.Status; s.ActiveKey != "" || s.NextKey == "" || s.NextAt == nil || s.LastExpiry == nil || len(s.Accepted) != 6 || s.Algorithm != "ES256" {
		t.Errorf("status of the revocation: %+v", s)
	}
	eventually(t, func() error {
		got := do(t, admin, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`))
		if got.Code != 503 || got.Header.Get("Retry-After") == "" || !strings.Contains(string(got.Body), "no active ES256 key") {
			return fmt.Errorf("a token without a key that may sign: %d %v %s", got.Code, got.Header, got.Body)
		}
		return nil
	})
	p.create(t, namespace, "two", "azure", "team")
	token(t, admin, namespace, "two", `{}`) // RS256 is not concerned
	p.awaitToken(t, namespace, "two", nil)
	// Tokens of the revoked key are to be renewed at once; until there is a key, the token stays, and an Event reports it.
	p.awaitWarning(t, namespace, "Secret/one", "no signing key")
	if _, after := p.awaitToken(t, namespace, "one", nil); after.ID != before.ID {
		t.Errorf("the Secret has the token %s, and no key may sign one", after.ID)
	}
	eventually(t, func() error {
		got, err := p.publicClient(t).Get(p.JWKS)
		if err != nil {
			return err
		}
		defer got.Body.Close()
		var set struct{ Keys []struct{ Kid string } }
		if err := json.NewDecoder(got.Body).Decode(&set); err != nil {
			return err
		}
		for _, key := range set.Keys {
			if key.Kid == header.KeyID {
				return fmt.Errorf("the revoked key is still published")
			}
		}
		return nil
	})
	eventually(t, func() error {
		ring := p.keyRing(t)
		ready := meta.FindStatusCondition(ring.Status.Conditions, "Ready")
		if ready == nil || ready.Status != "False" || ready.Reason != "NoSigningKey" || len(ring.Status.Revoked) != 1 || ring.Status.Revoked[0].By != "credence-admin" {
			return fmt.Errorf("status: %+v", ring.Status)
		}
		events := p.must(t, "", "kubectl", "get", "events", "-n", "default", "-o", "custom-columns=:reason,:message")
		if !strings.Contains(events, "KeyRevoked") || !strings.Contains(events, "seen in a log") || !strings.Contains(events, "NoSigningKey") {
			return fmt.Errorf("events:\n%s", events)
		}
		return nil
	})
	audit, err := os.ReadFile(filepath.Join(p.Dir, "apiserver-audit.log"))
	if err != nil || !strings.Contains(string(audit), `"keyring.identity.credence.dev/changes":"revoked `+header.KeyID) || !strings.Contains(string(audit), "seen in a log") {
		t.Errorf("the audit log does not have who revoked the key and why: %v", err)
	}

	// An admin need not wait 28 hours for a spare if refusals are the lesser evil.
	expect(t, revoke(t, admin, "", fmt.Sprintf(`{"key":%q,"reason":"again"}`, header.KeyID)).is(409), "revoke twice")
	expect(t, rotate(t, admin, "", `{"algorithm":"ES256","now":true}`).is(409, "TooYoung"), "activate a young spare")
	must(t, rotate(t, admin, "", `{"algorithm":"ES256","now":true,"acceptRefusals":true,"reason":"tokens are needed"}`).is(201), "activate a young spare all the same")
	eventually(t, func() error {
		return do(t, admin, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(201)
	})
}

// A relying party with a copy of the keys holds back a rotation until it is acknowledged to know the spare.
func TestPlaneAcknowledgements(t *testing.T) {
	p := alone(t)
	ring := p.keyRing(t)
	t.Cleanup(func() {
		p.must(t, "", "kubectl", "patch", "keyring", "workload-identities", "--type=merge", "-p", `{"spec":{"relyingParties":null}}`)
	})
	p.must(t, "", "kubectl", "patch", "keyring", "workload-identities", "--type=merge", "-p", `{"spec":{"relyingParties":[{"name":"bank"}]}}`)
	eventually(t, func() error {
		now := p.keyRing(t)
		if len(now.Status.RelyingParties) != 1 || len(now.Status.RelyingParties[0].MissingKeys) != 4 {
			return fmt.Errorf("relying parties: %+v", now.Status.RelyingParties)
		}
		for _, next := range now.Status.Next {
			if diff := cmp.Diff([]string{"bank"}, next.Awaits); diff != "" {
				return fmt.Errorf("the next change awaits (-want +got):\n%s", diff)
			}
		}
		return nil
	})
	var known []string
	for _, key := range ring.Status.Keys {
		known = append(known, fmt.Sprintf("%q", key.ID))
	}
	p.must(t, "", "kubectl", "patch", "keyring", "workload-identities", "--type=merge", "-p",
		`{"spec":{"relyingParties":[{"name":"bank","knownKeys":[`+strings.Join(known, ",")+`]}]}}`)
	eventually(t, func() error {
		now := p.keyRing(t)
		if len(now.Status.RelyingParties) != 1 || len(now.Status.RelyingParties[0].MissingKeys) != 0 || len(now.Status.Next) == 0 || len(now.Status.Next[0].Awaits) != 0 {
			return fmt.Errorf("relying parties: %+v, next: %+v", now.Status.RelyingParties, now.Status.Next)
		}
		return nil
	})
}

// In a cluster the ring is in a Secret, which two servers share by rights on this one name alone.
func TestPlaneKeysInASecret(t *testing.T) {
	withPlane(t)
	var args []string
	for _, component := range []string{"apiserver", "controller"} {
		args = append(args, "--arg", component+"=--keys-dir=", "--arg", component+"=--keys-secret=credence-system/credence-keys")
	}
	p := newPlane(t, args...)
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "team")
	first, _ := claims(t, token(t, p.config(t), namespace, "one", `{}`).Status.Token)
	must(t, rotate(t, p.config(t), "", `{"algorithm":"ES256","now":true,"acceptRefusals":true,"reason":"a test"}`).is(201), "rotate")
	eventually(t, func() error {
		if second, _ := claims(t, token(t, p.config(t), namespace, "one", `{}`).Status.Token); second.KeyID == first.KeyID {
			return fmt.Errorf("still signed by %s", first.KeyID)
		}
		ring := p.keyRing(t)
		if len(ring.Status.Keys) != 5 || key(t, ring, "ES256", "retiring").ID != first.KeyID {
			return fmt.Errorf("keys: %+v", ring.Status.Keys)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(p.Dir, "keys")); err == nil {
		t.Error("keys are in a folder too")
	}
	secret := p.must(t, "", "kubectl", "-n", "credence-system", "get", "secret", "credence-keys", "-o", "jsonpath={.type} {.data}")
	if !strings.HasPrefix(secret, "identity.credence.dev/key-ring ") || strings.Count(secret, ".pem") != 5 {
		t.Errorf("the Secret is of another type, or holds other keys: %.60s", secret)
	}
	p.must(t, "", "kubectl", "wait", "--for=condition=Ready", "keyring/workload-identities", "--timeout=5m")

	// A Secret that is lost is no beginning: the issuer has a past.
	p.loseKeys(t)
	p.tokenRefused(t, namespace, "the stored ring of keys")
	eventually(t, func() error {
		log, err := os.ReadFile(filepath.Join(p.Dir, "logs", "apiserver.log"))
		if err != nil || !strings.Contains(string(log), "the issuer has had keys") {
			return fmt.Errorf("the API server does not name what is lost: %v", err)
		}
		return nil
	})
	if made, err := p.storedKeys(t); len(made) > 0 || err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("keys were made anew: %v, %v", made, err)
	}
}
