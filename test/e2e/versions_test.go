package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/test/testkit"
)

// away reports whether a request failed because the API server is being replaced.
func away(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.Canceled) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "connection re") || strings.Contains(err.Error(), "GOAWAY") ||
		strings.Contains(err.Error(), "apiserver is shutting down")
}

// TestVersionsUpgrade replaces the kube-apiserver of a running plane by each newer minor but the last. Meanwhile pods are admitted, each with its token,
// and nothing of Credence is restarted. The newest minor follows by a restart of the whole plane.
func TestVersionsUpgrade(t *testing.T) {
	versions := append([]string{testkit.Version(t, "KUBERNETES_OLDEST")}, strings.Split(testkit.Version(t, "KUBERNETES_BETWEEN"), ",")...)
	current := filepath.Join(t.TempDir(), "current")
	use := func(version string) {
		t.Helper()
		folder := need(filepath.Abs(filepath.Join("..", "..", "bin", "kubernetes", version)))(t)
		if _, err := os.Stat(filepath.Join(folder, "built")); err != nil {
			t.Fatalf("Kubernetes %s is not built: make test-versions builds it", version)
		}
		must(t, os.Symlink(folder, current+".next"))
		must(t, os.Rename(current+".next", current))
	}
	use(versions[0])
	t.Setenv("CREDENCE_KUBERNETES_PROGRAMS", "")
	p := newPlane(t, "--arg", "devcluster=--kubernetes-programs="+current, "--arg", "devcluster=--restart-apiserver")
	namespace := p.accountWithIdentities(t, "banana")
	pods := p.client(t).CoreV1().Pods(namespace)

	admitted, stop := atomic.Int64{}, make(chan struct{})
	ended := make(chan error, 1)
	admit := func() error {
		pod, err := pods.Create(t.Context(), podOf("web"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "workload-identity-") }) {
			return fmt.Errorf("pod %s was admitted without its token", pod.Name)
		}
		admitted.Add(1)
		if err := pods.Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	eventually(t, admit) // the label of the namespace is known by then
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := admit(); err != nil && !away(err) {
				ended <- err
				return
			}
		}
	}()
	for i, version := range versions {
		if i > 0 {
			use(version)
			p.replaceAPIServer(t)
		}
		minor := need(strconv.Atoi(strings.Split(version, ".")[1]))(t)
		eventually(t, func() error {
			if got, err := p.answeringMinor(t); err != nil || got != minor {
				return fmt.Errorf("the cluster is 1.%d, want 1.%d: %w", got, minor, err)
			}
			return nil
		})
		before := admitted.Load()
		eventually(t, func() error {
			select {
			case err := <-ended:
				return fatal{fmt.Errorf("on Kubernetes %s: %w", version, err)}
			default:
			}
			if admitted.Load() < before+10 {
				return errors.New("no pods are admitted")
			}
			return nil
		})
		// A patch of the identity has its token renewed, through webhook, agent and API server.
		p.patchIdentity(t, namespace, "banana", fmt.Sprintf(`{"spec":{"audiences":["sts.amazonaws.com","a%d"]}}`, minor))
		secret := need(p.client(t).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}))(t).Items[0].Name
		var claims carried
		p.awaitToken(t, namespace, secret, func(c carried) bool {
			claims = c
			return slices.Contains(c.Audience, fmt.Sprintf("a%d", minor))
		})
		t.Logf("Kubernetes %s: %d pods admitted, audiences %v", version, admitted.Load(), claims.Audience)
	}
	close(stop)
	expect(t, <-ended, "the last pod")

	// The policies that 1.36 has brought are applied to objects of Credence.
	p.must(t, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy","metadata":{"name":"label"},"spec":{"reinvocationPolicy":"Never",
"matchConstraints":{"resourceRules":[{"apiGroups":["authentication.gardener.cloud"],"apiVersions":["*"],"operations":["CREATE"],"resources":["workloadidentities"]}]},
"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'policy': 'yes'}}]"}}]}}
---
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"label"},"spec":{"policyName":"label"}}`, "kubectl", "apply", "-f", "-")
	body := `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"generateName":"l-"},"spec":{"audiences":["x"],"targetSystem":{"type":"generic"}}}`
	eventually(t, func() error {
		return wantAnswer(do(t, p.config(t), "POST", identitiesPath(namespace), "application/json", body), http.StatusCreated, `"policy":"yes"`)
	})

	// The newest is in the program itself, which is started anew.
	p.must(t, "", "credence", "down", "--dir", p.Dir)
	up(t, "--dir", p.Dir)
	if got := p.minor(t); got != minors.All().Newest {
		t.Errorf("the cluster is 1.%d", got)
	}
	eventually(t, admit)
}

// replaceAPIServer ends the plane's kube-apiserver, which is started again.
func (p plane) replaceAPIServer(t *testing.T) {
	t.Helper()
	log := "--audit-log-path=" + filepath.Join(p.Dir, "devcluster", "audit.log")
	for _, file := range need(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		line, _ := os.ReadFile(file) // of a process that has ended: nothing
		if args := strings.Split(string(line), "\x00"); filepath.Base(args[0]) == "kube-apiserver" && slices.Contains(args, log) {
			must(t, syscall.Kill(need(strconv.Atoi(filepath.Base(filepath.Dir(file))))(t), syscall.SIGTERM))
			return
		}
	}
	t.Fatal("kube-apiserver does not run")
}
