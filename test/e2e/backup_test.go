package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ageKey writes a key of age, and returns its recipient and its file.
func ageKey(t *testing.T) (recipient, file string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return key.Recipient().String(), file
}

// bindCluster gives a user a ClusterRole in all namespaces.
func (p plane) bindCluster(t *testing.T, user, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := p.client(t).RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A backup has all identities, and with a recipient the ring. Its user needs one ClusterRole, and more for the ring.
func TestBackupCreate(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	namespace := p.namespace(t)
	wi := p.create(t, namespace, "cart", "aws", "team")
	p.bindCluster(t, "keeper", "credence:backup")
	dir := t.TempDir()
	file := filepath.Join(dir, "plain.backup")
	if _, stderr, code := p.command(t, "", "credence", "backup", "create", file, "--as", "other"); code != 1 || !strings.Contains(stderr, "forbidden") {
		t.Errorf("as a user without rights: exit code %d, %s", code, stderr)
	}
	if out := p.must(t, "", "credence", "backup", "create", file, "--as", "keeper"); !strings.Contains(out, "1 identity of "+p.Issuer+", without the ring of keys") {
		t.Errorf("output: %s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info, err)
	}
	var shown struct {
		Issuer     string
		Identities []struct {
			Metadata struct{ UID string }
			Status   struct{ Sub string }
		}
	}
	if err := json.Unmarshal([]byte(p.must(t, "", "credence", "backup", "inspect", file, "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Issuer != p.Issuer || len(shown.Identities) != 1 || shown.Identities[0].Metadata.UID != string(wi.UID) || shown.Identities[0].Status.Sub != wi.Status.Sub {
		t.Errorf("inspect: %+v", shown)
	}
	if _, stderr, code := p.command(t, "", "credence", "backup", "create", file); code != 2 || !strings.Contains(stderr, "is not replaced") {
		t.Errorf("to a file that exists: exit code %d, %s", code, stderr)
	}

	recipient, key := ageKey(t)
	_, otherKey := ageKey(t)
	keysDir := filepath.Join(p.Dir, "keys")
	if _, stderr, code := p.command(t, "", "credence", "backup", "create", dir, "--ring", "--keys-dir", keysDir); code != 2 || !strings.Contains(stderr, "--ring needs --recipient") {
		t.Errorf("with the ring, and not encrypted: exit code %d, %s", code, stderr)
	}
	p.must(t, "", "credence", "backup", "create", dir, "--ring", "--keys-dir", keysDir, "--recipient", recipient, "--keep", "1")
	made, err := filepath.Glob(filepath.Join(dir, "credence-*.backup"))
	if err != nil || len(made) != 1 {
		t.Fatalf("backups in the folder: %v, %v", made, err)
	}
	if content, err := os.ReadFile(made[0]); err != nil || strings.Contains(string(content), "PRIVATE") || !strings.HasPrefix(string(content), "age-encryption.org/") {
		t.Errorf("the file is not encrypted: %v", err)
	}
	for _, refused := range []struct {
		arguments []string
		want      string
	}{
		{nil, "the backup is encrypted with age"},
		{[]string{"--age-key", otherKey}, "the backup is encrypted to another recipient"},
		{[]string{"--age-key", file}, "has no private key of age"},
	} {
		_, stderr, code := p.command(t, "", "credence", append([]string{"backup", "inspect", made[0]}, refused.arguments...)...)
		if code != 2 || !strings.Contains(stderr, refused.want) {
			t.Errorf("inspect %v: exit code %d, %s", refused.arguments, code, stderr)
		}
	}
	out := p.must(t, "", "credence", "backup", "inspect", made[0], "--age-key", key, "-o", "yaml")
	if strings.Contains(out, "PRIVATE") || !strings.Contains(out, "activatedAt") {
		t.Errorf("inspect of a ring: %s", out)
	}
}
