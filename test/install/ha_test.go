package install

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	system = "credence-system"
	// overlap of certificate authorities is long enough for a kubelet that looks at Secrets every few seconds.
	overlap = time.Minute
)

// staysAvailable replaces and ends parts while tokens are requested, and pods and identities created. Of planned changes no client notices, but for
// the request that kube-apiserver may lose when an API server stops. After others, clients that repeat requests succeed, and once all pods are ready
// again no request fails. How long requests fail depends on the machine, and is reported: docs/howto/high-availability.md has it.
func (i *installation) staysAvailable(t *testing.T) {
	l, stop := begin(t, i.cluster.Admin)
	defer stop()
	renewals := i.renew(t)
	const restart = "restart kube-apiserver"
	for _, change := range []struct {
		name    string
		planned bool
		stopped int                                    // API servers, in order
		do      func(*testing.T) (moments []time.Time) // of changes that are not planned, which failures are reported to be after
	}{
		{"delete each pod", true, 2, i.deletePods},
		{"drain the node", true, 2, i.evictPods},
		{"upgrade to another image", true, 2, func(t *testing.T) []time.Time { return i.upgrade(t, "another") }},
		{"upgrade back", true, 2, func(t *testing.T) []time.Time { return i.upgrade(t, i.tag) }},
		{"new certificates", true, 0, i.replaceCertificates},
		{"a new authority", true, 0, i.replaceAuthority},
		{"kill each container", false, 0, i.killContainers},
		{restart, false, 0, i.restartAPIServer},
	} {
		begun := time.Now()
		l.take()
		moments := change.do(t)
		l.goesOn(t)
		took := time.Since(begun)
		taken := l.take()
		l.goesOn(t)
		for _, f := range l.take().failures {
			t.Errorf("%s: all is ready again, and still: %s", change.name, f)
		}
		t.Logf("%s: %s, answered %v, %d failures and %d lost by kube-apiserver, the slowest request took %s", change.name, took.Round(time.Second), taken.answered, len(taken.failures), taken.lost, taken.slowest.Round(time.Millisecond))
		if change.name == restart {
			taken.timeouts = nil // reviews read from the kube-apiserver that is away, the only one
		}
		for _, each := range append(taken.fatal, taken.timeouts...) {
			t.Errorf("%s: %s", change.name, each)
		}
		if change.planned && taken.lost > change.stopped*atOnce {
			t.Errorf("%s: %d requests failed, of %d at once in each of %d API servers that stopped: %s", change.name, taken.lost, atOnce, change.stopped, lostByClient)
		}
		failed, last := map[string]int{}, map[string]time.Duration{}
		for n, f := range taken.failures {
			failed[f.kind]++
			var after time.Duration // the latest moment before it
			for _, moment := range moments {
				if f.at.After(moment) {
					after = f.at.Sub(moment).Round(time.Millisecond)
				}
			}
			last[f.kind] = max(last[f.kind], after)
			if change.planned && n < 10 {
				t.Errorf("%s: %s", change.name, f)
			}
		}
		t.Logf("%s: failed %v, the last after %v", change.name, failed, last)
		if t.Failed() {
			t.Log(state(t, i.client, system))
		}
	}
	stop()
	renewals(t)
}

// pods returns those of the installation's Deployments, by component. Pods of Jobs stay when they have ended.
func (i *installation) pods(ctx context.Context) (map[string][]corev1.Pod, error) {
	list, err := i.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: appsv1.DefaultDeploymentUniqueLabelKey})
	if err != nil {
		return nil, err
	}
	all := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		component := pod.Labels["app.kubernetes.io/component"]
		all[component] = append(all[component], pod)
	}
	return all, nil
}

// settled waits until all pods are ready, and those of gone are not there.
func (i *installation) settled(t *testing.T, gone map[types.UID]bool) map[string][]corev1.Pod {
	t.Helper()
	var found map[string][]corev1.Pod
	eventually(t, func(ctx context.Context) error {
		deployments, err := i.client.AppsV1().Deployments(system).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if found, err = i.pods(ctx); err != nil {
			return err
		}
		if len(found) != len(deployments.Items) {
			return fmt.Errorf("pods of %d components, want %d", len(found), len(deployments.Items))
		}
		for component, pods := range found {
			if len(pods) != 2 {
				return fmt.Errorf("%d pods of %s", len(pods), component)
			}
			for _, pod := range pods {
				if gone[pod.UID] || pod.DeletionTimestamp != nil || !ready(pod) {
					return fmt.Errorf("%s is not gone, or not ready: %+v", pod.Name, pod.Status)
				}
			}
		}
		return nil
	})
	return found
}

func ready(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// renew has the agent renew a token again and again. The function that it returns ends that, and compares what was written with it.
func (i *installation) renew(t *testing.T) (compare func(*testing.T)) {
	t.Helper()
	secrets := i.client.CoreV1().Secrets("default")
	list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: "authentication.gardener.cloud/purpose"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Secrets with a token: %v", len(list.Items), err)
	}
	name, renewals := list.Items[0].Name, 0
	operation := []byte(`{"metadata": {"annotations": {"gardener.cloud/operation": "renew-workload-identity-token"}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(done)
		before := list.Items[0].Data["token"]
		for asked := begun; ; time.Sleep(50 * time.Millisecond) {
			now, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case err != nil: // kube-apiserver is away
			case now.Annotations["gardener.cloud/operation"] != "":
			case !bytes.Equal(now.Data["token"], before):
				before = now.Data["token"]
				renewals++
				fallthrough
			default:
				// Also where the answer to a request was lost: what it did is seen by then.
				if ctx.Err() != nil {
					return
				}
				asked = time.Now()
				_, _ = secrets.Patch(t.Context(), name, types.StrategicMergePatchType, operation, metav1.PatchOptions{})
			}
			if time.Since(asked) > 2*time.Minute {
				t.Errorf("a renewal was lost: asked for at %s", asked)
				return
			}
		}
	}()
	return func(t *testing.T) {
		cancel()
		<-done
		// kube-apiserver writes the event of a change after others can see the change. An agent that was killed may not have waited for the
		// answer, and then the event is that of an error.
		eventually(t, func(context.Context) error {
			written, failed, requested := i.audited(t, begun, name)
			if written+failed < renewals {
				return fmt.Errorf("%d renewals were written, and %d perhaps, want %d", written, failed, renewals)
			}
			t.Logf("%d renewals: %d were written, %d perhaps, %d tokens requested", renewals, written, failed, requested)
			if written > renewals {
				t.Errorf("%d renewals were written, want %d", written, renewals)
			}
			return nil
		})
	}
}

// audited counts what the agent has done since a time: how often it wrote a Secret, perhaps wrote it, and requested a token.
func (i *installation) audited(t *testing.T, since time.Time, secret string) (written, failed, requested int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(i.folder, "audit*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("audit logs: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var event auditv1.Event
			if !bytes.Contains(line, []byte("credence-agent")) || json.Unmarshal(line, &event) != nil || event.ObjectRef == nil || event.ResponseStatus == nil {
				continue
			}
			if event.User.Username != "system:serviceaccount:credence-system:credence-agent" || event.RequestReceivedTimestamp.Time.Before(since) {
				continue
			}
			wrote, code := event.ObjectRef.Resource == "secrets" && event.ObjectRef.Name == secret && (event.Verb == "patch" || event.Verb == "update"), event.ResponseStatus.Code
			switch {
			case wrote && code < 300:
				written++
			case wrote && code != http.StatusConflict:
				failed++
			case code >= 300:
			case event.ObjectRef.Resource == "workloadidentities" && event.ObjectRef.Subresource == "token" && event.Verb == "create":
				requested++
			}
		}
	}
	return written, failed, requested
}
