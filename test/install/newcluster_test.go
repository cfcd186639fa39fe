package install

import (
	"slices"
	"testing"

	"filippo.io/age"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster is lost. In a new one, the chart with the same issuer and a backup of the CronJob give the same identity and the same keys: a token of
// before is verified there, and a new one has the same subject. Before that, the identity has moved to another storage.
func TestInANewCluster(t *testing.T) {
	t.Parallel()
	i := withNode(t)
	lost := i.parts(t)
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	backups := volume(t, lost.client, "credence-backup")
	volume(t, lost.client, "credence-etcd")
	values := []string{"issuer=" + issuer, "workloads.enabled=false", "gmsa.enabled=false", "pods.replicas=1", "pods.preStopSeconds=1",
		"backup.enabled=true", "backup.schedule=0 0 1 1 *", "backup.ring=true", "backup.recipients={" + key.Recipient().String() + "}"}
	lost.helm(t, lost.arguments("install", append(slices.Clone(values), "storage.type=embedded")...)...)
	available(t, lost.ControlPlane)
	made, err := makeIdentity(t.Context(), i.identities, "app")
	if err != nil {
		t.Fatal(err)
	}
	token := issue(t, lost.client)
	subject, keyID := verify(t, lost.client, token)
	same := func(p *partial, i *installation) {
		t.Helper()
		again, err := i.identities.Get(t.Context(), "app", metav1.GetOptions{})
		if err != nil || again.GetUID() != made.GetUID() {
			t.Errorf("%v, uid %s, want %s", err, again.GetUID(), made.GetUID())
		}
		for what, each := range map[string]string{"a token of before": token, "a new token": issue(t, p.client)} {
			if have, by := verify(t, p.client, each); have != subject || by != keyID {
				t.Errorf("%s is of %s by key %s, want %s by %s", what, have, by, subject, keyID)
			}
		}
	}

	if stdout, stderr, err := helm(t, lost.kubeconfig, append(lost.arguments("upgrade", append(slices.Clone(values), "storage.copyFrom=embedded")...), "--namespace", system)...); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	lost.copied(t)
	same(lost, i)
	lost.firstBackup(t)
	lost.command(t, "kubectl", "create", "job", "now", "--namespace", system, "--from=cronjob/credence-backup")
	lost.finished(t, "backup", "now", batchv1.JobComplete)
	lost.Stop()

	another := i.inCluster(t)
	found := another.parts(t)
	restore := func(more ...string) {
		t.Helper()
		found.command(t, "credence", append([]string{"backup", "restore", latest(t, backups), "--yes", "--age-key", written(t, key)}, more...)...)
	}
	values = append(values, "backup.enabled=false") // its volume is gone
	if stdout, stderr, err := helm(t, found.kubeconfig, append(found.arguments("install", append(slices.Clone(values), "components.apiserver.replicas=0", "components.controller.replicas=0")...), "--namespace", system)...); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	restore("--ring")
	found.helm(t, found.arguments("upgrade", values...)...)
	available(t, found.ControlPlane)
	restore()
	same(found, another)
}

// arguments are those of Helm for values.
func (p *partial) arguments(verb string, values ...string) []string {
	return with([]string{verb, "credence", p.chart}, slices.Concat(p.images, values)...)
}
