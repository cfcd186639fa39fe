package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// volume makes one for a claim of the chart, and returns its folder.
func volume(t *testing.T, client kubernetes.Interface, claim string) string {
	t.Helper()
	folder := t.TempDir()
	volumeIn(t, client, claim, claim, folder)
	return folder
}

// volumeIn is volume with a name and a folder.
func volumeIn(t *testing.T, client kubernetes.Interface, name, claim, folder string) {
	t.Helper()
	if err := os.Chmod(folder, 0o777); err != nil { // the pod is another user
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:               &corev1.ObjectReference{Namespace: system, Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
	}}
	if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// backups runs Jobs of the chart's CronJob. The backup that one writes can be read; where one fails, its pod has the reason. TestInANewCluster restores one.
func (p *partial) backups(t *testing.T, folder string, key *age.X25519Identity) {
	if _, err := makeIdentity(t.Context(), p.objects.Resource(workloadIdentities).Namespace("default"), "app"); err != nil {
		t.Fatal(err)
	}
	p.firstBackup(t)
	p.command(t, "kubectl", "create", "job", "now", "--namespace", system, "--from=cronjob/credence-backup")
	p.finished(t, "backup", "now", batchv1.JobComplete)
	eventually(t, func(ctx context.Context) error {
		schedule, err := p.client.BatchV1().CronJobs(system).Get(ctx, "credence-backup", metav1.GetOptions{})
		if err == nil && schedule.Status.LastSuccessfulTime == nil {
			err = fmt.Errorf("the CronJob does not show that a backup was made: %+v", schedule.Status)
		}
		return err
	})
	if printed := p.command(t, "credence", "backup", "inspect", latest(t, folder), "--age-key", written(t, key)); !strings.Contains(printed, verified(t, p.client)) || !strings.Contains(printed, issuer) {
		t.Errorf("inspect lacks the identity, or %s:\n%s", issuer, printed)
	}

	// Without its right, as after a mistake.
	if err := p.client.RbacV1().ClusterRoleBindings().Delete(t.Context(), "credence:backup:scheduled", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { // the API server sees it a moment later
		review, err := p.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + system + ":credence-backup",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "authentication.gardener.cloud", Resource: "workloadidentities"},
		}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			err = fmt.Errorf("backups may still list identities: %s", review.Status.Reason)
		}
		return err
	})
	schedule, err := p.client.BatchV1().CronJobs(system).Get(t.Context(), "credence-backup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: *schedule.Spec.JobTemplate.ObjectMeta.DeepCopy(), Spec: *schedule.Spec.JobTemplate.Spec.DeepCopy()}
	job.Name, job.Spec.BackoffLimit = "forbidden", new(int32) // no other attempt
	if _, err := p.client.BatchV1().Jobs(system).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.finished(t, "backup", "forbidden", batchv1.JobFailed)
	eventually(t, func(ctx context.Context) error {
		events, err := p.client.CoreV1().Events(system).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=forbidden,reason=BackoffLimitExceeded"})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no Event of the Job that failed")
		}
		return err
	})
	pods, err := p.client.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=forbidden,app.kubernetes.io/component=backup"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("pods of the Job: %v, %+v", err, pods)
	}
	for _, container := range pods.Items[0].Status.ContainerStatuses {
		if ended := container.State.Terminated; ended == nil || !strings.Contains(ended.Message, "forbidden") {
			t.Errorf("the pod does not have the reason: %+v", container.State)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("after a Job that failed the volume has %v, %v", left, err)
	}
}

// written returns a file with a private key.
func written(t *testing.T, key *age.X25519Identity) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// latest returns the later of two backups: the first one, and one of the CronJob.
func latest(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files of the volume: %v, %v", files, err)
	}
	return files[1]
}

// firstBackup waits until the installation has made a backup without a request.
func (p *partial) firstBackup(t *testing.T) {
	t.Helper()
	jobs, err := p.client.BatchV1().Jobs(system).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=backup"})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("Jobs of the first backup: %v, %+v", err, jobs)
	}
	p.finished(t, "backup", jobs.Items[0].Name, batchv1.JobComplete)
}

// command runs a program as an admin, and returns what it printed.
func (p *partial) command(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	return runProgram(t, p.client, p.kubeconfig, program, arguments...)
}

// runProgram runs a program with a kubeconfig, and returns what it printed.
func runProgram(t *testing.T, client kubernetes.Interface, kubeconfig, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), controlplane.Program(program), arguments...) // also in a cleanup
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", program, strings.Join(arguments, " "), err, out, state(t, client, system))
	}
	return string(out)
}

// finished waits until a Job, which its label finds, has ended in one way.
func (p *partial) finished(t *testing.T, component, name string, want batchv1.JobConditionType) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		jobs, err := p.client.BatchV1().Jobs(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component, FieldSelector: "metadata.name=" + name})
		if err != nil {
			return err
		}
		for _, job := range jobs.Items {
			for _, condition := range job.Status.Conditions {
				switch {
				case condition.Status != corev1.ConditionTrue:
				case condition.Type == want:
					return nil
				case condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed:
					t.Fatalf("the Job is %s: %s\n%s", condition.Type, condition.Message, state(t, p.client, system))
				}
			}
		}
		return fmt.Errorf("the Job %s has not ended: %s", name, state(t, p.client, system))
	})
}

// Backups are made if a value turns them on, by an account that reads identities, and the keys only if these are backed up.
func TestBackups(t *testing.T) {
	const issuer, recipient = "issuer=https://id.example.com", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	arguments := func(job *unstructured.Unstructured) []string {
		return as[batchv1.CronJob](t, job).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args
	}
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
	plain := byKind("backup.enabled=true", "backup.ring=false")
	if plain["CronJob"] == nil || plain["Job"] == nil || plain["PersistentVolumeClaim"] == nil || plain["Role"] != nil {
		t.Fatalf("with backups there are %v", plain)
	}
	first := as[batchv1.Job](t, plain["Job"])
	if diff := cmp.Diff(as[batchv1.CronJob](t, plain["CronJob"]).Spec.JobTemplate.Spec.Template, first.Spec.Template); diff != "" {
		t.Errorf("the first backup is another one (-scheduled +first):\n%s", diff)
	}
	if again := byKind("backup.enabled=true", "backup.ring=false", "backup.schedule=0 0 1 1 *")["Job"].GetName(); again != first.Name {
		t.Errorf("another schedule makes another first backup, %s after %s", again, first.Name)
	}
	if again := byKind("backup.enabled=true", "backup.ring=false", "image.tag=v9")["Job"].GetName(); again == first.Name {
		t.Errorf("%s can't be changed, and would be", again)
	}
	if have := arguments(plain["CronJob"]); !slices.Equal(have, []string{"backup", "create", "/backups", "--keep=30"}) {
		t.Errorf("arguments %v", have)
	}
	full := byKind("backup.enabled=true", "backup.recipients={"+recipient+"}", "backup.volume.claim=mine")
	if full["Role"] == nil || full["PersistentVolumeClaim"] != nil {
		t.Errorf("with keys, and a volume of one's own, there are %v", full)
	}
	for _, want := range []string{"--recipient=" + recipient, "--ring", "--keys-secret=credence-system/credence-keys"} {
		if !slices.Contains(arguments(full["CronJob"]), want) {
			t.Errorf("arguments %v lack %s", arguments(full["CronJob"]), want)
		}
	}
	signer := byKind("backup.enabled=true", "keys.signerSocket=/run/credence/signer/signer.sock")
	if signer["CronJob"] == nil || signer["Role"] != nil || slices.Contains(arguments(signer["CronJob"]), "--ring") {
		t.Errorf("with an external signer there are %v", signer)
	}
	for set, want := range map[string]string{
		"backup.keep=7":                "backup.recipients: missing",
		"backup.recipients={AGE-SECR}": "/backup/recipients/0",
		"backup.keep=-1":               "/backup/keep",
	} {
		if _, stderr, err := helm(t, "", "template", "credence", chart, "--namespace", "credence-system", "--set", issuer, "--set", "backup.enabled=true", "--set", set); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: %v, want an error with %q:\n%s", set, err, want, stderr)
		}
	}
}

// With a class of storage that waits for the first consumer, the first backup is one, so that an upgrade with backups ends while it waits for all objects.
// The objects of an upgrade that failed go when backups are switched off, and nothing but their volume is left by uninstalling. No pod runs: the test binds the
// volume once a pod is there that mounts it, as a scheduler would.
func TestVolumeOfBackupsWaitsForAPod(t *testing.T) {
	for _, program := range []string{"helm", "helm3"} {
		t.Run(program, func(t *testing.T) {
			folder := t.TempDir()
			cluster, err := controlplane.Start(t.Context(), folder, "--port", "0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Stop)
			client, kubeconfig := kubernetes.NewForConfigOrDie(cluster.Admin), filepath.Join(folder, "admin.kubeconfig")
			makeNamespace(t, client, system, nil)
			late := storagev1.VolumeBindingWaitForFirstConsumer
			if _, err := client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &late,
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			run := func(arguments ...string) error {
				stdout, stderr, err := runHelm(t, program, kubeconfig, append(arguments, "--namespace", system)...)
				if err != nil {
					return fmt.Errorf("helm %s: %w\n%s%s", strings.Join(arguments, " "), err, stdout, stderr)
				}
				return nil
			}
			upgrade := func(timeout string, set ...string) error {
				return run(with([]string{"upgrade", "--install", "credence", chart, "--wait", "--timeout", timeout}, append(set, "issuer="+issuer, "pods.replicas=0", "backup.ring=false", "backup.volume.storageClass=late")...)...)
			}
			testkit.Must(t, upgrade("5m"))
			if err := upgrade("5s", "backup.enabled=true"); err == nil {
				t.Fatal("an upgrade ends without a volume")
			}
			if left := leftOfBackups(t, client); len(left) < 4 {
				t.Fatalf("the upgrade has installed only %v", left)
			}
			testkit.Must(t, upgrade("5m", "backup.enabled=false"))
			noBackupsLeft(t, client)

			scheduled, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- bindForPod(scheduled, client, "credence-backup") }()
			err = upgrade("5m", "backup.enabled=true")
			stop()
			if bound := <-ended; err != nil || bound != nil && !errors.Is(bound, context.Canceled) {
				t.Fatalf("%v, volume: %v", err, bound)
			}
			testkit.Must(t, run("uninstall", "credence"))
			noBackupsLeft(t, client)
			if claim, err := client.CoreV1().PersistentVolumeClaims(system).Get(t.Context(), "credence-backup", metav1.GetOptions{}); err != nil || claim.Status.Phase != corev1.ClaimBound {
				t.Errorf("the volume with the backups: %v, %+v", err, claim)
			}
		})
	}
}

// leftOfBackups returns what there is of backups but their volume and what has an owner.
func leftOfBackups(t *testing.T, client kubernetes.Interface) (left []string) {
	t.Helper()
	add := func(kind string, object metav1.Object, err error) {
		t.Helper()
		switch {
		case err == nil && object.GetDeletionTimestamp() == nil:
			left = append(left, kind+" "+object.GetName())
		case err != nil && !apierrors.IsNotFound(err):
			t.Fatal(err)
		}
	}
	account, err := client.CoreV1().ServiceAccounts(system).Get(t.Context(), "credence-backup", metav1.GetOptions{})
	add("ServiceAccount", account, err)
	schedule, err := client.BatchV1().CronJobs(system).Get(t.Context(), "credence-backup", metav1.GetOptions{})
	add("CronJob", schedule, err)
	binding, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), "credence:backup:scheduled", metav1.GetOptions{})
	add("ClusterRoleBinding", binding, err)
	jobs, err := client.BatchV1().Jobs(system).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=backup"})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range jobs.Items {
		add("Job", &each, nil)
	}
	return left
}

func noBackupsLeft(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if left := leftOfBackups(t, client); len(left) > 0 {
			return fmt.Errorf("there are still %v", left)
		}
		return nil
	})
}

// bindForPod waits until a pod mounts a claim, and binds it.
func bindForPod(ctx context.Context, client kubernetes.Interface, claim string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		pods, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, volume := range pod.Spec.Volumes {
				if volume.PersistentVolumeClaim == nil || volume.PersistentVolumeClaim.ClaimName != claim {
					continue
				}
				_, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim}, Spec: corev1.PersistentVolumeSpec{
					Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					StorageClassName: "late", ClaimRef: &corev1.ObjectReference{Namespace: system, Name: claim},
					PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
				}}, metav1.CreateOptions{})
				return err
			}
		}
	}
}
