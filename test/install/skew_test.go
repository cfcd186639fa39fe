package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/test/testkit"
)

// run runs credence of a release, whose exit code and output must be as wanted.
func (r release) run(t *testing.T, kubeconfig string, code int, want string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(r.folder, "credence"), arguments...) // also in a cleanup
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	if have := command.ProcessState.ExitCode(); have != code || !strings.Contains(string(out), want) {
		t.Errorf("credence %s of %s: exit code %d, want %d and %q:\n%s", strings.Join(arguments, " "), r.version, have, code, want, out)
	}
	return string(out)
}

// backup returns the file of a backup.
func (r release) backup(t *testing.T, i *installation) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	r.run(t, i.kubeconfig, 0, "identit", "backup", "create", file)
	return file
}

// commandLine has the command line of a release work with the installation of the other one.
func (i *installation) commandLine(t *testing.T, r release) {
	t.Helper()
	for _, c := range []struct {
		command string
		code    int
		want    string
	}{
		{"get", 0, "app"},
		{"doctor", 1, "installation"}, // clouds can't reach this issuer
		{"token create app", 0, "ey"},
		{"explain serviceaccount default", 0, "app"},
		{"keys list", 0, "active"},
	} {
		r.run(t, i.kubeconfig, c.code, c.want, strings.Fields(c.command)...)
	}
}

// joined runs agent and webhook of a release in a cluster of their own. They deliver an identity of the installation.
func (i *installation) joined(t *testing.T, r, other release) {
	t.Helper()
	folder, credentials := filepath.Join(t.TempDir(), "plane"), filepath.Join(t.TempDir(), "credentials")
	name := "of-" + strings.ReplaceAll(r.version, ".", "-")
	r.run(t, i.kubeconfig, 0, "", "cluster", "join", name, "--identities", "default", "--out", credentials)
	port, err := testkit.FreePorts(11)
	if err != nil {
		t.Fatal(err)
	}
	defer r.run(t, "", 0, "", "down", "--dir", folder)
	r.run(t, "", 0, "", "up", "--dir", folder, "--port", strconv.Itoa(port), "--detach",
		"--arg", "agent=--identity-kubeconfig="+credentials+"/agent.kubeconfig",
		"--arg", "webhook=--identity-kubeconfig="+credentials+"/webhook.kubeconfig")
	other.run(t, "", 0, "agent", "status", "--dir", folder)
	admin, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(admin)
	labels := []byte(`{"metadata": {"labels": {"identity.credence.dev/workload-identities": "enabled"}}}`)
	if _, err := client.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	mayUseApp(t, client, "default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
	eventually(t, func(ctx context.Context) error {
		made, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(made.Spec.Volumes) == 0 {
			err = errors.New("the pod would have no volume with a token")
		}
		return err
	})
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var token string
	eventually(t, func(ctx context.Context) error {
		of := metav1.ListOptions{LabelSelector: "authentication.gardener.cloud/purpose"}
		found, err := client.CoreV1().Secrets("default").List(ctx, of)
		if err != nil {
			return err
		}
		for _, secret := range found.Items {
			token = string(secret.Data["token"])
		}
		if token == "" {
			return fmt.Errorf("no token in %d Secrets", len(found.Items))
		}
		return nil
	})
	if subject, _ := verify(t, i.client, token); !strings.Contains(subject, ":default:app:") {
		t.Errorf("the token is of %s", subject)
	}
}
