package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
)

const (
	keysName        = "credence-keys"
	apiserverUser   = "system:serviceaccount:credence-system:credence-apiserver"
	controllerUser  = "system:serviceaccount:credence-system:credence-controller"
	formerManifest  = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"credence-keys","namespace":"credence-system"},"type":"identity.credence.dev/key-ring"}`
	lastAppliedName = corev1.LastAppliedConfigAnnotation
)

// keysSecret has the Secret of the ring made, by the credentials of the key controller of the plane.
func (p plane) keysSecret(t *testing.T) {
	t.Helper()
	client := need(kubernetes.NewForConfig(fromFile(t, filepath.Join(p.Dir, "pki", "controller", "kubeconfig"))))(t)
	must(t, keystore.NewSecret(client.CoreV1(), "credence-system", keysName).Keep(t.Context()))
}

// TestSecretOfKeysIsGuarded: whatever rights a user has, the keys leave the Secret by our own programs alone.
func TestSecretOfKeysIsGuarded(t *testing.T) {
	inTurn(t)
	shared.keysSecret(t)
	const secretary = "secretary"
	shared.role(t, "credence-system", "secretary", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}}, secretary)
	shared.untilAllowed(t, "credence-system", secretary, "update", "secrets", keysName)
	secrets := func(user string, groups ...string) corev1client.SecretInterface {
		return shared.clientAs(t, user, groups...).CoreV1().Secrets("credence-system")
	}
	admin, ours := secrets("admin", "system:masters"), secrets(apiserverUser, "system:masters")
	kid := strings.Repeat("A", 43)
	fill := func(data map[string][]byte) *corev1.Secret {
		t.Helper()
		stored, err := admin.Get(t.Context(), keysName, metav1.GetOptions{})
		must(t, err)
		stored.Data = data
		if stored, err = ours.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("the API server may not write keys: %v", err)
		}
		return stored
	}
	dry := []string{metav1.DryRunAll}
	ring := func() map[string][]byte {
		return map[string][]byte{"ring.json": []byte("{}"), kid + ".pem": []byte("private"), "note": []byte("of others")}
	}
	t.Cleanup(func() {
		_, _ = ours.Patch(context.Background(), keysName, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
	})

	empty := fill(nil)
	for who, client := range map[string]corev1client.SecretInterface{"a user with rights on Secrets": secrets(secretary), "an admin": admin} {
		filled := empty.DeepCopy()
		filled.Data = ring()
		_, err := client.Update(t.Context(), filled, metav1.UpdateOptions{DryRun: dry})
		if operator := client == admin; operator != (err == nil) {
			t.Errorf("%s puts keys into an empty Secret: %v", who, err)
		}
		allowed(t, who+" deletes an empty Secret", client.Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}))
	}

	stored := fill(ring())
	var replaced corev1.Secret
	must(t, json.Unmarshal([]byte(formerManifest), &replaced))
	for who, client := range map[string]corev1client.SecretInterface{"a user with rights on Secrets": secrets(secretary), "an admin": admin} {
		for what, change := range map[string]func(*corev1.Secret){
			"a replace by the manifest of before": func(s *corev1.Secret) { *s = replaced },
			"an empty ring":                       func(s *corev1.Secret) { s.Data = nil },
			"a private key less":                  func(s *corev1.Secret) { delete(s.Data, kid+".pem") },
			"no ring.json":                        func(s *corev1.Secret) { delete(s.Data, "ring.json") },
			"an old copy":                         func(s *corev1.Secret) { s.Data["ring.json"] = []byte("{ }") },
			"another private key":                 func(s *corev1.Secret) { s.Data[kid+".pem"] = []byte("mine") },
			"one key more":                        func(s *corev1.Secret) { s.Data[strings.Repeat("B", 43)+".pem"] = []byte("mine") },
			"an immutable one":                    func(s *corev1.Secret) { s.Immutable = new(true) },
			"a finalizer":                         func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example.com/x"} },
			"an owner": func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "u"}}
			},
		} {
			changed := stored.DeepCopy()
			change(changed)
			_, err := client.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: dry})
			refused(t, what+" by "+who, err, "credence-keys")
		}
		others := stored.DeepCopy()
		others.Labels, others.Data["note"] = map[string]string{"team": "a"}, []byte("changed")
		_, err := client.Update(t.Context(), others, metav1.UpdateOptions{DryRun: dry})
		allowed(t, who+" changes what is not of the ring", err)
	}
	refused(t, "a deletion without the right to initialize keys", secrets(secretary).Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}), "would be lost")
	refused(t, "a deletion of all Secrets", secrets(secretary).DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{FieldSelector: "metadata.name=" + keysName}), "would be lost")
	allowed(t, "a deletion by an operator of the keys", admin.Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}))
	allowed(t, "the end of the namespace", secrets("system:serviceaccount:kube-system:namespace-controller", "system:masters").Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}))

	// As it was in the manifests of before: a tool with all rights deletes it, as it has left them.
	must(t, errOf(admin.Patch(t.Context(), keysName, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+keystore.WrittenBack+`":null}}}`), metav1.PatchOptions{})))
	refused(t, "a deletion before the key controller has marked it", admin.Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}), "kubectl annotate secret credence-keys")
	shared.keysSecret(t)
	allowed(t, "a deletion afterwards", admin.Delete(t.Context(), keysName, metav1.DeleteOptions{DryRun: dry}))

	for what, secret := range map[string]*corev1.Secret{
		"another ring": {ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Type: keystore.SecretType},
		"another type": {ObjectMeta: metav1.ObjectMeta{Name: keysName}, Type: corev1.SecretTypeOpaque},
	} {
		_, err := secrets(secretary).Create(t.Context(), secret, metav1.CreateOptions{DryRun: dry})
		refused(t, what, err, "credence-keys")
	}
	// A key controller that was taken over makes no token of another account, had it the right to create Secrets.
	_, err := secrets(controllerUser, "system:masters").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "stolen", Annotations: map[string]string{corev1.ServiceAccountNameKey: "credence-apiserver"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{DryRun: dry})
	refused(t, "a token of another account", err, "credence-keys")
	controller := fromFile(t, filepath.Join(shared.Dir, "pki", "controller", "kubeconfig"))
	if got := do(t, controller, "POST", "/api/v1/namespaces/credence-system/secrets?dryRun=All", "application/json", formerManifest); got.Code != http.StatusForbidden {
		t.Errorf("the key controller creates Secrets of any name: %d %s", got.Code, got.Body)
	}
}

// signal sends a signal to components, and returns a function that sends another one.
func (p plane) signal(t *testing.T, signal syscall.Signal, names ...string) (then func(syscall.Signal)) {
	t.Helper()
	var processes []int
	for _, name := range names {
		processes = append(processes, p.part(t, name).PID)
	}
	send := func(signal syscall.Signal) {
		t.Helper()
		for _, pid := range processes {
			must(t, syscall.Kill(pid, signal))
		}
	}
	send(signal)
	return send
}

// storedKeys are the names of what the Secret of the ring holds.
func (p plane) storedKeys(t *testing.T) ([]string, error) {
	t.Helper()
	stored, err := p.client(t).CoreV1().Secrets("credence-system").Get(t.Context(), keysName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(stored.Data)), nil
}

// loseKeys deletes the Secret of the ring while no program runs that could write it back. Those that are started then have not seen it.
func (p plane) loseKeys(t *testing.T) {
	t.Helper()
	then := p.signal(t, syscall.SIGSTOP, "apiserver", "controller")
	p.must(t, "", "kubectl", "-n", "credence-system", "delete", "secret", keysName)
	then(syscall.SIGKILL)
}

// TestPlaneKeysComeBack: the Secret of the ring is replaced, deleted, emptied and put back by tools of the cluster, and no key is lost.
func TestPlaneKeysComeBack(t *testing.T) {
	withPlane(t)
	var args []string
	for _, component := range []string{"apiserver", "controller"} {
		args = append(args, "--arg", component+"=--keys-dir=", "--arg", component+"=--keys-secret=credence-system/credence-keys", "--arg", component+"=--keys-refresh-interval=1s")
	}
	p := newPlane(t, args...)
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "team")
	p.must(t, "", "kubectl", "wait", "--for=condition=Ready", "keyring/workload-identities", "--timeout=5m")
	secrets := p.client(t).CoreV1().Secrets("credence-system")
	ours := p.clientAs(t, apiserverUser, "system:masters").CoreV1().Secrets("credence-system")
	kid := func() string {
		t.Helper()
		var id string
		eventually(t, func() error {
			got := do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`))
			if got.Code != http.StatusCreated {
				return fmt.Errorf("a token: %d %s", got.Code, got.Body)
			}
			var issued struct{ Status struct{ Token string } }
			if err := json.Unmarshal(got.Body, &issued); err != nil {
				return err
			}
			header, _ := claims(t, issued.Status.Token)
			id = header.KeyID
			return nil
		})
		return id
	}
	comesBack := func(what string, before []string) {
		t.Helper()
		eventually(t, func() error {
			if now, err := p.storedKeys(t); err != nil || !slices.Equal(now, before) {
				return fmt.Errorf("%s: the Secret holds %v, want %v: %w", what, now, before, err)
			}
			return nil
		})
	}
	signer := kid()
	before, err := p.storedKeys(t)
	if err != nil || len(before) != 5 {
		t.Fatalf("the Secret holds %v: %v", before, err)
	}
	manifests := filepath.Join(t.TempDir(), "keys.yaml")
	content, err := os.ReadFile("../../deploy/base/31-keys.yaml")
	if err == nil {
		err = os.WriteFile(manifests, content, 0o600)
	}
	must(t, err)
	prune := []string{"kubectl", "apply", "-n", "credence-system", "-f", manifests, "--prune", "--all", "--prune-allowlist=core/v1/Secret"}

	// An upgrade from manifests that had the Secret, before and after the programs were replaced.
	then := p.signal(t, syscall.SIGSTOP, "controller")
	p.must(t, "", "kubectl", "-n", "credence-system", "annotate", "secret", keysName, keystore.WrittenBack+"-", "argocd.argoproj.io/sync-options-", "kustomize.toolkit.fluxcd.io/prune-", "helm.sh/resource-policy-")
	p.must(t, formerManifest, "kubectl", "apply", "-f", "-")
	if out, code := p.run(t, prune[0], prune[1:]...); code == 0 || !strings.Contains(out, "kubectl annotate secret credence-keys") {
		t.Errorf("a prune before the key controller has marked the Secret: %d %s", code, out)
	}
	if now, err := p.storedKeys(t); err != nil || !slices.Equal(now, before) {
		t.Fatalf("keys after a prune: %v, %v", now, err)
	}
	then(syscall.SIGCONT)
	eventually(t, func() error {
		marked, err := secrets.Get(t.Context(), keysName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			keystore.WrittenBack: "true", "helm.sh/resource-policy": "keep", "kustomize.toolkit.fluxcd.io/prune": "disabled",
			"argocd.argoproj.io/sync-options": "Prune=false", lastAppliedName: "",
		} {
			if marked.Annotations[name] != value {
				return fmt.Errorf("annotation %s: %q, want %q", name, marked.Annotations[name], value)
			}
		}
		return nil
	})
	uid := func() types.UID {
		t.Helper()
		stored := need(secrets.Get(t.Context(), keysName, metav1.GetOptions{}))(t)
		return stored.UID
	}
	same := uid()
	p.must(t, "", prune[0], prune[1:]...)
	if now, err := p.storedKeys(t); err != nil || !slices.Equal(now, before) || uid() != same {
		t.Errorf("after an upgrade by kubectl apply --prune: %v, %v", now, err)
	}
	if _, out, code := p.command(t, formerManifest, "kubectl", "replace", "-f", "-"); code == 0 || !strings.Contains(out, "may neither remove nor change them") {
		t.Errorf("a replace: %d %s", code, out)
	}

	// Deleted with the right to it, and emptied where the policy is not in force: our own account stands for that.
	p.must(t, "", "kubectl", "-n", "credence-system", "delete", "secret", keysName)
	comesBack("after a deletion", before)
	must(t, errOf(ours.Patch(t.Context(), keysName, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})))
	comesBack("after it was emptied", before)
	if now := kid(); now != signer {
		t.Errorf("signed by %s, and by %s before", now, signer)
	}

	// An old copy, from before a rotation.
	old, err := secrets.Get(t.Context(), keysName, metav1.GetOptions{})
	must(t, err)
	if got := rotate(t, p.config(t), "", `{"algorithm":"ES256","now":true,"acceptRefusals":true,"reason":"a test"}`); got.Code != http.StatusCreated {
		t.Fatalf("rotate: %d %s", got.Code, got.Body)
	}
	eventually(t, func() error {
		if now := kid(); now == signer {
			return errors.New("still signed by the key of before")
		}
		return nil
	})
	signer = kid()
	if before, err = p.storedKeys(t); err != nil {
		t.Fatal(err)
	}
	copied, err := json.Marshal(map[string]any{"data": old.Data})
	must(t, err)
	must(t, errOf(ours.Patch(t.Context(), keysName, types.MergePatchType, copied, metav1.PatchOptions{})))
	eventually(t, func() error {
		stored, err := secrets.Get(t.Context(), keysName, metav1.GetOptions{})
		if err != nil || string(stored.Data["ring.json"]) == string(old.Data["ring.json"]) {
			return fmt.Errorf("the old copy is still stored: %w", err)
		}
		return nil
	})
	comesBack("after an old copy was put back", before)
	if now := kid(); now != signer {
		t.Errorf("signed by %s, and by %s before", now, signer)
	}

	revokedKeyStaysRevoked(t, p, namespace, signer)
	keysEndWithTheNamespace(t, p)
}

// revokedKeyStaysRevoked: the API server revokes a key while the key controller is cut off, the Secret is emptied, the API server is gone, and the
// key controller returns.
func revokedKeyStaysRevoked(t *testing.T, p plane, namespace, signer string) {
	t.Helper()
	controller := p.signal(t, syscall.SIGSTOP, "controller")
	if got := revoke(t, p.config(t), "", `{"key":"`+signer+`","reason":"leaked","acceptRefusals":true}`); got.Code != http.StatusCreated {
		t.Fatalf("revoke: %d %s", got.Code, got.Body)
	}
	// The answer means that it is remembered outside of the Secret.
	if ring := p.keyRing(t); len(ring.Status.Revoked) != 1 || ring.Status.Revoked[0].ID != signer {
		t.Errorf("the KeyRing does not know of the revocation: %+v", ring.Status.Revoked)
	}
	apiserver := p.signal(t, syscall.SIGSTOP, "apiserver")
	ours := p.clientAs(t, apiserverUser, "system:masters").CoreV1().Secrets("credence-system")
	must(t, errOf(ours.Patch(t.Context(), keysName, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})))
	apiserver(syscall.SIGKILL)
	controller(syscall.SIGCONT)
	p.tokenRefused(t, namespace, "the stored ring of keys")
	eventually(t, func() error {
		log, err := os.ReadFile(filepath.Join(p.Dir, "logs", "apiserver.log"))
		if err != nil || !strings.Contains(string(log), "the issuer has had keys") {
			return fmt.Errorf("the API server does not name what is lost: %w", err)
		}
		ring := p.keyRing(t)
		for _, condition := range ring.Status.Conditions {
			if condition.Type == "Ready" && condition.Reason == "RingUnusable" {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", ring.Status.Conditions)
	})
	if now, err := p.storedKeys(t); err != nil || len(now) != 0 {
		t.Errorf("the key controller has written back what it had: %v, %v", now, err)
	}
	p.must(t, "", "credence", "keys", "initialize", "--accept-loss", "--reason", "a drill")
	eventually(t, func() error {
		if now, err := p.storedKeys(t); err != nil || len(now) == 0 || slices.Contains(now, signer+".pem") {
			return fmt.Errorf("after the loss was accepted: %v, %w", now, err)
		}
		return nil
	})
}

// keysEndWithTheNamespace: nothing holds the namespace of Credence when it is deleted.
func keysEndWithTheNamespace(t *testing.T, p plane) {
	t.Helper()
	p.must(t, "", "kubectl", "delete", "namespace", "credence-system", "--wait=false")
	eventually(t, func() error {
		// credence up registers the API again once the API server that was killed is ready.
		p.must(t, "", "kubectl", "delete", "apiservice", "v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev", "--ignore-not-found")
		left, err := p.client(t).CoreV1().Namespaces().Get(t.Context(), "credence-system", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there: %w, %+v", err, left.Status.Conditions)
		}
		return nil
	})
}

// A Secret that a tool was to delete is taken from it on a real API server.
func TestSecretIsKept(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	client := shared.client(t).CoreV1()
	store := keystore.NewSecret(client, namespace, "ring")
	must(t, store.Keep(t.Context()))
	if _, _, err := store.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("a Secret that was just made: %v", err)
	}
	first, _ := keystoretest.Rings()
	must(t, store.Save(t.Context(), first, ""))
	must(t, errOf(client.Secrets(namespace).Patch(t.Context(), "ring", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+lastAppliedName+`":"{}","mine":"x","`+keystore.WrittenBack+`":null},"labels":{"applyset.kubernetes.io/part-of":"a","team":"b"}}}`), metav1.PatchOptions{})))
	must(t, store.Keep(t.Context()))
	kept, err := client.Secrets(namespace).Get(t.Context(), "ring", metav1.GetOptions{})
	must(t, err)
	if kept.Annotations[lastAppliedName] != "" || kept.Annotations["mine"] != "x" || kept.Annotations[keystore.WrittenBack] != "true" || kept.Labels["applyset.kubernetes.io/part-of"] != "" || kept.Labels["team"] != "b" {
		t.Errorf("annotations %v, labels %v", kept.Annotations, kept.Labels)
	}
	must(t, store.Keep(t.Context()))
	again, err := client.Secrets(namespace).Get(t.Context(), "ring", metav1.GetOptions{})
	if err != nil || again.ResourceVersion != kept.ResourceVersion {
		t.Errorf("a Secret that is kept already was written: %v", err)
	}
	if ring, _, err := store.Load(t.Context()); err != nil || keystoretest.Diff(first, ring) != "" {
		t.Errorf("the ring: %v", err)
	}
}
