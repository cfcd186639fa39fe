package install

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Backups are made if a value turns them on, by an account that reads identities, and the keys only if these are backed up.
func TestBackups(t *testing.T) {
	const issuer, recipient = "issuer=https://id.example.com", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	byKind := func(set ...string) map[string]*unstructured.Unstructured {
		found := map[string]*unstructured.Unstructured{}
		for _, o := range template(t, append([]string{issuer}, set...)...) {
			if strings.HasPrefix(o.GetName(), "credence-backup") || o.GetName() == "credence:backup:scheduled" {
				found[o.GetKind()] = o
			}
		}
		return found
	}
	if made := byKind(); len(made) != 0 {
		t.Errorf("without backups there are %v", made)
	}
	plain := byKind("backup.enabled=true")
	if plain["CronJob"] == nil || plain["PersistentVolumeClaim"] == nil || plain["Role"] != nil {
		t.Fatalf("with backups there are %v", plain)
	}
	if arguments := backupArguments(t, plain["CronJob"]); !slices.Equal(arguments, []string{"backup", "create", "/backups", "--keep=30"}) {
		t.Errorf("arguments %v", arguments)
	}
	full := byKind("backup.enabled=true", "backup.ring=true", "backup.recipients={"+recipient+"}", "backup.volume.claim=mine")
	if full["Role"] == nil || full["PersistentVolumeClaim"] != nil {
		t.Errorf("with keys, and a volume of one's own, there are %v", full)
	}
	for _, want := range []string{"--recipient=" + recipient, "--ring", "--keys-secret=credence-system/credence-keys"} {
		if !slices.Contains(backupArguments(t, full["CronJob"]), want) {
			t.Errorf("arguments %v lack %s", backupArguments(t, full["CronJob"]), want)
		}
	}
	for set, want := range map[string]string{
		"backup.ring=true":             "backup.recipients: missing",
		"backup.recipients={AGE-SECR}": "/backup/recipients/0",
		"backup.keep=-1":               "/backup/keep",
	} {
		if _, stderr, err := helm(t, "", "template", "credence", chart, "--namespace", "credence-system", "--set", issuer, "--set", "backup.enabled=true", "--set", set); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: %v, want an error with %q:\n%s", set, err, want, stderr)
		}
	}
}

func backupArguments(t *testing.T, job *unstructured.Unstructured) []string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(podSpec(job), "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers %v, %v", containers, err)
	}
	arguments, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return arguments
}
