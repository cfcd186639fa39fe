package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/coreos/go-oidc/v3/oidc"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// ageKey writes a key of age, and returns its recipient and its file.
func ageKey(t *testing.T) (recipient, file string) {
	t.Helper()
	key := need(age.GenerateX25519Identity())(t)
	file = filepath.Join(t.TempDir(), "key.txt")
	must(t, os.WriteFile(file, []byte(key.String()+"\n"), 0o600))
	return key.Recipient().String(), file
}

// bindCluster gives a user a ClusterRole in all namespaces, and waits until that is in effect.
func (p plane) bindCluster(t *testing.T, user, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	client := p.client(t).RbacV1()
	must(t, errOf(client.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})))
	bound := need(client.ClusterRoles().Get(t.Context(), role, metav1.GetOptions{}))(t)
	p.untilGiven(t, "", binding.Subjects[0], bound.Rules)
}

// backUp makes backups of a plane with one identity, and returns one with the ring, and the file of the key that reads it. A backup has all identities, and with a
// recipient the ring. Its user needs one ClusterRole, and more for the ring.
func (p plane) backUp(t *testing.T, wi *v1alpha1.WorkloadIdentity) (file, key string) {
	t.Helper()
	p.bindCluster(t, "keeper", "credence:backup")
	dir := t.TempDir()
	file = filepath.Join(dir, "plain.backup")
	if _, stderr, code := p.command(t, "", "credence", "backup", "create", file, "--as", "other"); code != 1 || !strings.Contains(stderr, "forbidden") {
		t.Errorf("as a user without rights: exit code %d, %s", code, stderr)
	}
	if out := p.must(t, "", "credence", "backup", "create", file, "--as", "keeper"); !strings.Contains(out, "1 identity of "+p.Issuer+", without the ring of keys") {
		t.Errorf("output: %s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info, err)
	}
	for _, want := range []string{p.Issuer, string(wi.UID), wi.Status.Sub} {
		if shown := p.must(t, "", "credence", "backup", "inspect", file, "-o", "json"); !strings.Contains(shown, want) {
			t.Errorf("inspect lacks %s: %s", want, shown)
		}
	}
	recipient, key := ageKey(t)
	_, otherKey := ageKey(t)
	keysDir := filepath.Join(p.Dir, "keys")
	if out := p.must(t, "", "credence", "backup", "create", dir, "--ring", "--keys-dir", keysDir, "--recipient", recipient, "--keep", "1", "-o", "json"); !strings.Contains(out, `"ring": true`) {
		t.Errorf("%s", out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "credence-*.backup"))
	if err != nil || len(made) != 1 {
		t.Fatalf("backups in the folder: %v, %v", made, err)
	}
	if content, err := os.ReadFile(made[0]); err != nil || strings.Contains(string(content), "PRIVATE") || !strings.HasPrefix(string(content), "age-encryption.org/") {
		t.Errorf("the file is not encrypted: %v", err)
	}
	for want, arguments := range map[string][]string{
		"the backup is encrypted with age":             nil,
		"the backup is encrypted to another recipient": {"--age-key", otherKey},
		"has no private key of age":                    {"--age-key", file},
	} {
		if _, stderr, code := p.command(t, "", "credence", append([]string{"backup", "inspect", made[0]}, arguments...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("inspect %v: exit code %d, %s", arguments, code, stderr)
		}
	}
	if out := p.must(t, "", "credence", "backup", "inspect", made[0], "--age-key", key, "-o", "yaml"); strings.Contains(out, "PRIVATE") || !strings.Contains(out, "activatedAt") {
		t.Errorf("inspect of a ring: %s", out)
	}

	// A Secret takes the ring, and gives it to a backup.
	again, ring := filepath.Join(dir, "again.backup"), []string{"--ring", "--keys-secret", wi.Namespace + "/ring"}
	p.must(t, "", "credence", append([]string{"backup", "restore", made[0], "--age-key", key, "--yes"}, ring...)...)
	p.must(t, "", "credence", append([]string{"backup", "create", again, "--recipient", recipient}, ring...)...)
	if out := p.must(t, "", "credence", "backup", "restore", again, "--ring", "--keys-dir", keysDir, "--age-key", key, "--yes"); !strings.Contains(out, "is there already") {
		t.Errorf("the ring of the Secret is not that of the folder: %s", out)
	}
	return made[0], key
}

// A relying party that trusts one subject of one issuer goes on to, although the cluster is another one, restored from a backup: it is given nothing.
func TestPlaneRestoreIntoANewCluster(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	port := strings.TrimPrefix(p.APIServer, "https://127.0.0.1:")
	pool := x509.NewCertPool()
	p.trustedBy(t, pool)
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}})
	provider, err := oidc.NewProvider(ctx, p.Issuer)
	must(t, err)
	before := p.createIn(t, "shop", "cart")
	accepted := func(token string) {
		t.Helper()
		verified, err := provider.Verifier(&oidc.Config{ClientID: "team"}).Verify(ctx, token)
		if err != nil || verified.Subject != before.Status.Sub {
			t.Errorf("the relying party trusts %s, and refuses a token: %v, %+v", before.Status.Sub, err, verified)
		}
	}
	old := token(t, p.config(t), "shop", "cart", `{"duration":"2h"}`).Status.Token
	accepted(old)
	p.must(t, "", "kubectl", "patch", "keyring", "workload-identities", "--type=merge", "-p", `{"spec":{"relyingParties":[{"name":"vault"}]}}`)
	file, key := p.backUp(t, before)
	restore := func(p plane, arguments ...string) (string, string, int) {
		return p.command(t, "", "credence", append([]string{"backup", "restore", file, "--age-key", key}, arguments...)...)
	}

	// The cluster is gone, with its storage, keys and certificates.
	p.must(t, "", "credence", "down", "--dir", p.Dir)
	must(t, os.RemoveAll(p.Dir))
	up(t, "--dir", p.Dir, "--port", port)
	p.trustedBy(t, pool)

	if _, stderr, code := restore(p, "--yes"); code != 1 || !strings.Contains(stderr, "these namespaces of the backup do not exist: shop; nothing was changed") {
		t.Errorf("without the namespace: exit code %d, %s", code, stderr)
	}
	p.must(t, "", "kubectl", "create", "namespace", "shop")
	p.must(t, "", "kubectl", "create", "clusterrole", "maker", "--verb=create,list,get", "--resource=workloadidentities.authentication.gardener.cloud,keyrings.identity.credence.dev")
	p.bindCluster(t, "maker", "maker")
	if _, stderr, code := restore(p, "--yes", "--as", "maker"); code != 1 || !strings.Contains(stderr, "you need the verb adopt") {
		t.Errorf("without adopt: exit code %d, %s", code, stderr)
	}
	p.bindCluster(t, "restorer", "credence:restore")
	out, stderr, code := restore(p, "--dry-run", "--as", "restorer")
	if code != 0 || !strings.Contains(out, "+ shop/cart: "+before.Status.Sub+"\n") || !strings.Contains(out, "Dry run: nothing was changed.") {
		t.Errorf("dry run: exit code %d, %s%s", code, out, stderr)
	}
	if got := do(t, p.config(t), "GET", identitiesPath("shop")+"/cart", "", ""); got.Code != http.StatusNotFound {
		t.Errorf("after a dry run: %d %s", got.Code, got.Body)
	}
	if out, stderr, code := restore(p, "--yes", "--as", "restorer"); code != 0 || !strings.Contains(out, "Restored: 1 identity, 1 relying party.") {
		t.Fatalf("restore: exit code %d, %s%s", code, out, stderr)
	}
	if parties := p.must(t, "", "kubectl", "get", "keyring", "workload-identities", "-o", "jsonpath={.spec.relyingParties[*].name}"); parties != "vault" {
		t.Errorf("relying parties %q, want vault", parties)
	}
	after := p.read(t, identitiesPath("shop")+"/cart")
	if after.UID != before.UID || after.Status.Sub != before.Status.Sub || after.Status.Issuer != before.Status.Issuer || after.Labels["team"] != "a" {
		t.Errorf("restored: %+v, want %+v", after, before)
	}
	accepted(token(t, p.config(t), "shop", "cart", `{}`).Status.Token)

	t.Run("never over something newer", func(t *testing.T) {
		if out, _, code := restore(p, "--yes"); code != 0 || !strings.Contains(out, "= 1 identity as in the backup") || !strings.Contains(out, "Restored: 0 identities") {
			t.Errorf("again: exit code %d, %s", code, out)
		}
		p.must(t, "", "kubectl", "label", "wi", "cart", "-n", "shop", "team=b", "--overwrite")
		if out, stderr, code := restore(p, "--yes"); code != 1 || !strings.Contains(out, "~ shop/cart: labels\n    backup: {\"team\":\"a\"}\n    here:   {\"team\":\"b\"}") || !strings.Contains(stderr, "may be newer: nothing was changed") {
			t.Errorf("over what was changed: exit code %d, %s%s", code, out, stderr)
		}
		if _, stderr, code := restore(p, "--yes", "--keep-newer"); code != 0 {
			t.Errorf("with --keep-newer: exit code %d, %s", code, stderr)
		}
		if now := p.read(t, identitiesPath("shop")+"/cart"); now.Labels["team"] != "b" || now.UID != before.UID {
			t.Errorf("what was changed is %v %s", now.Labels, now.UID)
		}
	})
	t.Run("another issuer", func(t *testing.T) {
		if _, stderr, code := restore(shared, "--dry-run"); code != 1 || !strings.Contains(stderr, "the backup is of issuer "+p.Issuer+", and this cluster has issuer "+shared.Issuer) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
	t.Run("the ring", func(t *testing.T) {
		keysDir := filepath.Join(p.Dir, "keys")
		ring := []string{"--ring", "--keys-dir", keysDir, "--yes"}
		if _, stderr, code := restore(p, ring...); code != 1 || !strings.Contains(stderr, "another ring is stored there") {
			t.Errorf("over another ring: exit code %d, %s", code, stderr)
		}
		p.must(t, "", "credence", "down", "--dir", p.Dir)
		must(t, os.Rename(keysDir, keysDir+".other"))
		must(t, os.Mkdir(keysDir, 0o700))
		if out, stderr, code := restore(p, ring...); code != 0 {
			t.Fatalf("exit code %d, %s%s", code, out, stderr)
		}
		up(t, "--dir", p.Dir)
		if provider, err = oidc.NewProvider(ctx, p.Issuer); err != nil { // a relying party that knows no key
			t.Fatal(err)
		}
		eventually(t, func() error {
			_, err := provider.Verifier(&oidc.Config{ClientID: "team"}).Verify(ctx, old)
			return err
		})
		accepted(token(t, p.config(t), "shop", "cart", `{}`).Status.Token)
	})
}

// trustedBy adds the authority of a plane to a pool.
func (p plane) trustedBy(t *testing.T, pool *x509.CertPool) {
	t.Helper()
	ca, err := os.ReadFile(p.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("authority in %s: %v", p.CAFile, err)
	}
}

// createIn makes a namespace of a name, and an identity in it.
func (p plane) createIn(t *testing.T, namespace, name string) *v1alpha1.WorkloadIdentity {
	t.Helper()
	p.must(t, "", "kubectl", "create", "namespace", namespace)
	p.create(t, namespace, name, "generic", "team")
	p.must(t, "", "kubectl", "label", "wi", name, "-n", namespace, "team=a")
	return p.read(t, identitiesPath(namespace)+"/"+name)
}
