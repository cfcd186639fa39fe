package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// driftPods are decided about, of driftAccounts service accounts.
	driftPods, driftAccounts = 10000, 200
	// The limits of one look.
	driftSeconds, driftMB, driftRequests = 30, 200, 50
	// adminUser is the user of the plane's kubeconfig.
	adminUser = "credence-admin"
)

// measureDrift runs `credence drift` over many pods, half of which have drifted. The pods wait behind their gates, as the agent is retired.
func measureDrift(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled})
	if err != nil {
		return err
	}
	defer remove()
	restore, err := w.retire(ctx)
	if err != nil {
		return err
	}
	defer restore()
	if err := w.prepareDrift(ctx); err != nil {
		return err
	}
	requests, err := followAudit(w.plane, adminUser)
	if err != nil {
		return err
	}
	defer requests.close()
	command := exec.CommandContext(ctx, filepath.Join(s.bin, "credence"), "drift", "-n", w.namespace, "--kubeconfig", w.plane.Kubeconfig)
	command.Stdout, command.Stderr = io.Discard, os.Stderr
	began := time.Now()
	err = command.Run()
	seconds := time.Since(began).Seconds()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Errorf("half of the pods have drifted, and credence drift ended with %w", err)
	}
	calls, err := requests.since()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("drift of %d pods of %d accounts: ", driftPods, driftAccounts)
	t.add(row{what: what + "time", unit: "s", ours: seconds, peer: "limit", theirs: driftSeconds, target: atMost(1)})
	t.add(row{what: what + "CPU", unit: "s", ours: (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds(), peer: "limit of the time", theirs: driftSeconds, target: atMost(1)})
	t.add(row{what: what + "memory, at most", unit: "MB", ours: peakMB(command.ProcessState), peer: "limit", theirs: driftMB, target: atMost(1)})
	t.add(row{what: what + "requests per second", ours: float64(calls.reviews+calls.others) / seconds, peer: "limit", theirs: driftRequests, target: atMost(1)})
	t.add(row{what: what + "requests", ours: float64(calls.reviews + calls.others), peer: "one for each account", theirs: driftAccounts})
	return nil
}

func (w *world) prepareDrift(ctx context.Context) error {
	everyone := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:" + w.namespace}
	if err := w.bind(ctx, "accounts-use", "ClusterRole", "credence:workloadidentities:user", everyone); err != nil {
		return err
	}
	name := func(i int) string { return fmt.Sprintf("drift-%03d", i%driftAccounts) }
	err := many(ctx, driftAccounts, createWorkers, func(ctx context.Context, i int) error {
		if err := w.identity(ctx, name(i)); err != nil {
			return err
		}
		annotations := map[string]string{v1alpha1.AnnotationAccountIdentities: name(i)}
		return w.objects.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name(i), Annotations: annotations}})
	})
	if err != nil {
		return fmt.Errorf("create accounts: %w", err)
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: %d pods are made\n", driftPods)
	if err := many(ctx, driftPods, createWorkers, func(ctx context.Context, i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("pod-%05d", i)}}
		pod.Spec.ServiceAccountName = name(i)
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example.com/team/service:v1.2.3"}, {Name: "proxy", Image: "registry.example.com/team/proxy:v1.2.3"}}
		return w.objects.Create(ctx, pod)
	}); err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	// Half of the accounts give another identity from now on.
	return many(ctx, driftAccounts/2, createWorkers, func(ctx context.Context, i int) error {
		account := &corev1.ServiceAccount{}
		if err := w.get(ctx, w.namespace, name(i), account); err != nil {
			return err
		}
		account.Annotations[v1alpha1.AnnotationAccountIdentities] = name(i + 1)
		return w.objects.Update(ctx, account)
	})
}
