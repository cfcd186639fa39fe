package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/credence-id/credence/test/controlplane"
)

// A release is upgraded under load, rolled back and upgraded again. No client notices, but for the request that kube-apiserver may
// lose when an API server stops, and each pod gets its token. An identity with a field of the newer release keeps the field, and gets
// no tokens from the older one. Each part of one release works with the parts of the other release.
func TestUpgradeOnANode(t *testing.T) {
	nodeOrSkip(t)
	older, newer := releases(t)
	i := installation{images: &images{registry: "localhost/credence", tag: older.version}}.inCluster(t)
	for _, r := range []release{older, newer} {
		for _, program := range r.programs() {
			eventually(t, func(ctx context.Context) error { // until the node runs
				image := i.registry + "/" + program + ":" + r.version
				arguments := []string{"load-image", "--dir", i.folder, image, filepath.Join(r.folder, program)}
				load := exec.CommandContext(ctx, controlplane.Program("credence-devcluster"), arguments...)
				if out, err := load.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
		}
	}
	makeNamespace(t, i.client, system, underRestricted)
	i.chart = older.chart
	i.helm(t, "install", older.version)
	available(t, i.cluster)
	if _, err := makeIdentity(t.Context(), i.identities, "app"); err != nil {
		t.Fatal(err)
	}
	all := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:default"}
	bindRole(t, i.client, "default", "use-app", "ClusterRole", "credence:workloadidentities:user", all)
	i.podHasItsIdentity(t)
	subject := verified(t, i.client)

	ofOlder := older.backup(t, i)

	l, stop := begin(t, i.cluster.Admin)
	defer stop()
	u := &upgraded{installation: i, load: l}
	stopPods := u.runPods(t)
	defer stopPods()
	u.undisturbed(t, "helm upgrade", 2, func() {
		i.chart = newer.chart
		i.helm(t, "upgrade", newer.version)
	})
	newer.run(t, i.kubeconfig, 0, "= 1 identity as in the backup", "backup", "restore", ofOlder, "--dry-run")
	older.run(t, i.kubeconfig, 0, "default     app ", "backup", "inspect", newer.backup(t, i))
	noted, withNote := u.makeNoted(t, newer)
	u.undisturbed(t, "agent and webhook of the older release", 0, func() {
		i.setImages(t, older, func() {
			u.newerServer(t, older, withNote)
			i.commandLine(t, older)
			i.joined(t, older, newer)
		})
	})

	u.undisturbed(t, "helm rollback", 2, func() {
		arguments := []string{"rollback", "credence", "1", "--namespace", system, "--wait", "--timeout", "10m"}
		if stdout, stderr, err := helm(t, i.kubeconfig, arguments...); err != nil {
			t.Fatalf("%v\n%s%s\n%s", err, stdout, stderr, state(t, i.client, system))
		}
	})
	u.undisturbed(t, "agent and webhook of the newer release", 0, func() {
		i.setImages(t, newer, func() {
			u.olderServer(t, newer, withNote)
			i.commandLine(t, newer)
			i.joined(t, newer, older)
		})
	})

	u.undisturbed(t, "helm upgrade again", 2, func() { i.helm(t, "upgrade", newer.version) })
	again, err := i.identities.Get(t.Context(), "noted", metav1.GetOptions{})
	if err != nil || fmt.Sprint(again.Object["spec"]) != fmt.Sprint(noted.Object["spec"]) || len(again.GetAnnotations()) > 0 {
		t.Errorf("%v, the identity with the field is %v, want %v", err, again, noted)
	}
	if code, text := i.tokenOf(t, "noted"); code != http.StatusCreated {
		t.Errorf("a token of the identity with the field: %d %s", code, text)
	}
	if now := verified(t, i.client); now != subject {
		t.Errorf("tokens are of %s, want %s", now, subject)
	}
	stopPods()
	stop()
}

// release is a version with its programs and its chart.
type release struct{ version, folder, chart string }

func (release) programs() []string {
	return []string{"credence", "credence-server", "credence-discovery"}
}

// releases builds two: what is committed, and the same with a field of WorkloadIdentities more.
func releases(t *testing.T) (older, newer release) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "checkout")
	do := func(program string, arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, arguments...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOGC=off", "GOMEMLIMIT=1GiB")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, output)
		}
	}
	build := func(version string) release {
		t.Helper()
		do("git", "-C", source, "-c", "tag.gpgSign=false", "tag", version)
		r := release{version: version, folder: t.TempDir()}
		arguments := []string{"build", "-C", source, "-o", r.folder + "/", "-buildvcs=true", // the rest as in the Makefile
			"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"}
		for _, program := range r.programs() {
			arguments = append(arguments, "./cmd/"+program)
		}
		do("go", arguments...)
		others, err := filepath.Glob(controlplane.Program("*")) // such as the control plane
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range others {
			_ = os.Symlink(file, filepath.Join(r.folder, filepath.Base(file))) // but those that are there
		}
		number := strings.TrimPrefix(version, "v")
		of := filepath.Join(source, "deploy/chart/credence")
		do(controlplane.Program("helm"), "package", of, "--destination", r.folder, "--version", number, "--app-version", version)
		r.chart = filepath.Join(r.folder, "credence-"+number+".tgz")
		return r
	}
	patch, err := filepath.Abs("testdata/newer-field.patch")
	if err != nil {
		t.Fatal(err)
	}
	do("git", "clone", "--quiet", "--no-tags", "../..", source)
	older = build("v0.1.0")
	do("git", "-C", source, "apply", patch)
	do("git", "-C", source, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false",
		"commit", "--quiet", "--all", "--message", "a field")
	return older, build("v0.2.0")
}

// upgraded is an installation with clients.
type upgraded struct {
	*installation
	load *load
	ran  atomic.Int32 // pods
}

// undisturbed makes a change that no client may notice. No request fails, but for those that kube-apiserver may lose when API servers
// stop. Pods go on to start.
func (u *upgraded) undisturbed(t *testing.T, name string, stopped int, change func()) {
	t.Helper()
	u.load.take()
	begun, ran := time.Now(), u.ran.Load()
	change()
	u.settled(t, nil)
	u.load.goesOn(t)
	eventually(t, func(context.Context) error {
		if u.ran.Load() < ran+2 {
			return fmt.Errorf("%d pods have run", u.ran.Load()-ran)
		}
		return nil
	})
	taken := u.load.take()
	t.Logf("%s: %s, answered %v, the slowest in %s, %d pods ran, %d requests lost by kube-apiserver",
		name, time.Since(begun).Round(time.Second), taken.answered, taken.slowest.Round(time.Millisecond), u.ran.Load()-ran, taken.lost)
	for _, f := range taken.failures {
		t.Errorf("%s: %s", name, f)
	}
	if taken.lost > stopped*atOnce {
		t.Errorf("%s: kube-apiserver has lost %d requests, of %d at once in each of %d API servers", name, taken.lost, atOnce, stopped)
	}
	if taken.answered["token"] < 50 || taken.answered["pod"] < 50 {
		t.Errorf("%s: too few requests: %v", name, taken.answered)
	}
}

// runPods runs a pod after the other until stop, each of a service account of its own, so that the agent makes a Secret for it.
func (u *upgraded) runPods(t *testing.T) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			default:
			}
			if err := u.runPod(context.WithoutCancel(t.Context()), fmt.Sprintf("runs-%d", n)); err != nil {
				t.Errorf("pod %d: %v", n, err)
				return
			}
			u.ran.Add(1)
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		running.Wait()
	})
}

func (u *upgraded) runPod(ctx context.Context, name string) error {
	accounts, pods := u.client.CoreV1().ServiceAccounts("default"), u.client.CoreV1().Pods("default")
	lists := map[string]string{"identity.credence.dev/workload-identities": "app"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: lists}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: name,
		Containers: []corev1.Container{{Name: "app", Image: u.registry + "/credence:" + u.tag, Args: []string{"version"}}},
	}}
	if err := soon(ctx, func(ctx context.Context) (bool, error) { // until the webhook has seen the account
		made, err := pods.Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(made.Spec.Volumes) == 2, err
	}); err != nil {
		return fmt.Errorf("the pod has no volume with a token: %w", err)
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := soon(ctx, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, name, metav1.GetOptions{})
		pod = found
		return err == nil && found.Status.Phase == corev1.PodSucceeded, err
	}); err != nil {
		return fmt.Errorf("the pod has not ended: %w: %+v", err, pod.Status)
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return accounts.Delete(ctx, name, metav1.DeleteOptions{})
}

// soon is eventually for other goroutines, which end no test.
func soon(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pace, 5*time.Minute, true, condition)
}

// setImages gives agent and webhook the images of a release, as they are in the middle of an upgrade. It does more meanwhile.
func (i *installation) setImages(t *testing.T, r release, meanwhile func()) {
	t.Helper()
	kubectl := func(arguments string) {
		runProgram(t, i.client, i.kubeconfig, "kubectl", strings.Fields(arguments+" -n "+system)...)
	}
	for _, component := range []string{"agent", "webhook"} {
		kubectl(fmt.Sprintf("set image deployment/credence-%[1]s %[1]s=%[2]s/credence-server:%[3]s", component, i.registry, r.version))
	}
	meanwhile()
	for _, component := range []string{"agent", "webhook"} {
		kubectl("rollout status --timeout=5m deployment/credence-" + component)
	}
}

// makeNoted makes two identities with the field of the newer release. One is deleted after a backup. A Secret has a token of the other.
func (u *upgraded) makeNoted(t *testing.T, newer release) (noted *unstructured.Unstructured, backup string) {
	t.Helper()
	for _, name := range []string{"lost", "noted"} {
		var err error
		noted, err = u.identities.Create(t.Context(), identity(t, fmt.Sprintf(`{"kind": "WorkloadIdentity",
			"apiVersion": "authentication.gardener.cloud/v1alpha1", "metadata": {"name": %q},
			"spec": {"audiences": ["a"], "note": "kept", "targetSystem": {"type": "generic"}}}`, name)), metav1.CreateOptions{})
		if err != nil || !strings.Contains(fmt.Sprint(noted.Object["spec"]), "note:kept") {
			t.Fatalf("%v, the server has dropped the field: %v", err, noted)
		}
		if code, text := u.tokenOf(t, name); code != http.StatusCreated {
			t.Errorf("a token of the identity with the field: %d %s", code, text)
		}
	}
	backup = newer.backup(t, u.installation)
	if err := u.identities.Delete(t.Context(), "lost", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:   "noted",
		Labels: map[string]string{"authentication.gardener.cloud/purpose": "workload-identity-token-requestor"},
		Annotations: map[string]string{
			"workloadidentity.authentication.gardener.cloud/name":      "noted",
			"workloadidentity.authentication.gardener.cloud/namespace": "default",
		},
	}}
	if _, err := u.client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.hasToken(t)
	return noted, backup
}

// hasToken waits until the Secret has a token of the identity with the field.
func (u *upgraded) hasToken(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		secret, err := u.client.CoreV1().Secrets("default").Get(ctx, "noted", metav1.GetOptions{})
		if err == nil && len(secret.Data["token"]) == 0 {
			err = fmt.Errorf("no token in %v", secret.ObjectMeta)
		}
		return err
	})
}

// tokenOf returns the answer to a request for a token.
func (i *installation) tokenOf(t *testing.T, name string) (code int, text string) {
	t.Helper()
	raw, err := i.client.CoreV1().RESTClient().Post().AbsPath(identitiesPath + "/" + name + "/token").
		Body([]byte(tokenRequest().body)).MaxRetries(0).Do(t.Context()).StatusCode(&code).Raw()
	return code, fmt.Sprint(err, string(raw))
}

// newerServer has an older command line read no object, and no backup, of which it would lose a field.
func (u *upgraded) newerServer(t *testing.T, older release, withNote string) {
	t.Helper()
	without := filepath.Join(t.TempDir(), "without-note")
	older.run(t, u.kubeconfig, 2, `spec.note"): use the version of Credence that made it, v0.2.0, or`, "backup", "inspect", withNote)
	const unknown = "default/noted: the object has fields that this program does not know (spec.note)"
	older.run(t, u.kubeconfig, 1, unknown, "backup", "create", without)
	older.run(t, u.kubeconfig, 0, "ey", "token", "create", "noted")
}

// olderServer has an older API server refuse what it can't do with an identity that has the field of the newer release.
func (u *upgraded) olderServer(t *testing.T, newer release, withNote string) {
	t.Helper()
	if code, text := u.tokenOf(t, "noted"); code != http.StatusServiceUnavailable || !strings.Contains(text, "(spec.note)") {
		t.Errorf("a token of the identity with the field: %d %s, want 503 and the field", code, text)
	}
	u.hasToken(t)
	found := runProgram(t, u.client, u.kubeconfig, "kubectl", "get", "workloadidentity", "noted", "-o", "yaml")
	if !strings.Contains(found, "identity.credence.dev/newer-fields: spec.note") {
		t.Errorf("no annotation names the field:\n%s", found)
	}
	label := []byte(`{"metadata": {"labels": {"a": "b"}}}`)
	_, err := u.identities.Patch(t.Context(), "noted", types.MergePatchType, label, metav1.PatchOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "(spec.note)") {
		t.Errorf("a change of the identity with the field: %v, want 503 and the field", err)
	}
	without := filepath.Join(t.TempDir(), "without-note")
	newer.run(t, u.kubeconfig, 2, "default/noted: it has fields of a newer version of Credence than the API server is (spec.note)",
		"backup", "create", without)
	newer.run(t, u.kubeconfig, 1, `unknown field "spec.note"`, "backup", "restore", withNote, "--only", "default/lost", "--dry-run")
}
