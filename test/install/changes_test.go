package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deletePods deletes one pod of each component, and when all are there again the other.
func (i *installation) deletePods(t *testing.T) []time.Time {
	first, gone := i.settled(t, nil), map[types.UID]bool{}
	for n := range 2 {
		for _, pods := range first {
			gone[pods[n].UID] = true
			if err := i.client.CoreV1().Pods(system).Delete(t.Context(), pods[n].Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		i.settled(t, gone)
	}
	return nil
}

// evictPods has the node drained, as far as one can be that is alone: every pod is evicted, as soon as its disruption budget allows it.
func (i *installation) evictPods(t *testing.T) []time.Time {
	gone, refused := map[types.UID]bool{}, 0
	var left []corev1.Pod
	for _, pods := range i.settled(t, nil) {
		left = append(left, pods...)
	}
	for _, pod := range left {
		gone[pod.UID] = true
	}
	eventually(t, func(ctx context.Context) error {
		var stay []corev1.Pod
		var refusal error
		for _, pod := range left {
			err := i.client.PolicyV1().Evictions(system).Evict(ctx, &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: system},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
			})
			if err != nil && !apierrors.IsNotFound(err) {
				stay, refusal = append(stay, pod), err
				refused++
			}
		}
		left = stay
		return refusal
	})
	i.settled(t, gone)
	if refused == 0 {
		t.Error("no eviction was refused: the disruption budgets have no effect")
	}
	return nil
}

func (i *installation) upgrade(t *testing.T, tag string) []time.Time {
	if tag != i.tag {
		i.pushAs(t, tag)
	}
	i.helm(t, "upgrade", tag)
	for _, pods := range i.settled(t, nil) {
		for _, pod := range pods {
			if image := pod.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+tag) {
				t.Errorf("%s has the image %s", pod.Name, image)
			}
		}
	}
	return nil
}

// certificates returns those of the installation's Deployments and its authority, by Secret. Those of an installation before stay, too.
func (i *installation) certificates(ctx context.Context) (map[string]string, error) {
	deployments, err := i.client.AppsV1().Deployments(system).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	mounted := map[string]bool{"credence-ca": true}
	for _, each := range deployments.Items {
		mounted[each.Name+"-tls"] = true
	}
	list, err := i.client.CoreV1().Secrets(system).List(ctx, metav1.ListOptions{FieldSelector: "type=kubernetes.io/tls"})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, secret := range list.Items {
		if mounted[secret.Name] {
			all[secret.Name] = string(secret.Data["tls.crt"])
		}
	}
	return all, nil
}

// replaceCertificates deletes every serving certificate, and waits until each component shows the new one.
func (i *installation) replaceCertificates(t *testing.T) []time.Time {
	before, err := i.certificates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name := range before {
		if name == "credence-ca" {
			continue
		}
		if err := i.client.CoreV1().Secrets(system).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	i.renewed(t, before, "credence-ca")
	return nil
}

// replaceAuthority deletes the authority, and waits until certificates of the new one have replaced those of the one before, which is
// trusted no longer.
func (i *installation) replaceAuthority(t *testing.T) []time.Time {
	before, err := i.certificates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := i.client.CoreV1().Secrets(system).Delete(t.Context(), "credence-ca", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	i.renewed(t, before, "")
	eventually(t, func(ctx context.Context) error {
		authority, err := i.client.CoreV1().Secrets(system).Get(ctx, "credence-ca", metav1.GetOptions{})
		if err == nil && !bytes.Equal(authority.Data["ca.crt"], authority.Data["tls.crt"]) {
			err = fmt.Errorf("the authority before is still trusted")
		}
		return err
	})
	return nil
}

// renewed waits until every certificate but one is another than before, and all pods have theirs.
func (i *installation) renewed(t *testing.T, before map[string]string, but string) {
	t.Helper()
	pods := i.settled(t, nil)
	eventually(t, func(ctx context.Context) error {
		now, err := i.certificates(ctx)
		if err != nil {
			return err
		}
		for name, old := range before {
			if name != but && (now[name] == "" || now[name] == old) {
				return fmt.Errorf("%s is as before, or missing", name)
			}
		}
		for component, replicas := range pods {
			if component == "certificates" {
				continue // it reads its own by the API
			}
			for _, pod := range replicas {
				for _, pid := range processes(t, containerOf(pod)) {
					file := fmt.Sprintf("/proc/%d/root/tls/tls.crt", pid)
					if shown, err := os.ReadFile(file); err == nil && string(shown) != now["credence-"+component+"-tls"] {
						return fmt.Errorf("%s has the certificate before", pod.Name)
					}
				}
			}
		}
		return nil
	})
}

// killContainers kills a process of each component, and when all are ready again the other.
func (i *installation) killContainers(t *testing.T) []time.Time {
	first := i.settled(t, nil)
	var killed []time.Time
	for n := range 2 {
		restarts := map[types.UID]int32{}
		killed = append(killed, time.Now())
		for _, pods := range first {
			restarts[pods[n].UID] = pods[n].Status.ContainerStatuses[0].RestartCount
			kill(t, containerOf(pods[n]))
		}
		eventually(t, func(ctx context.Context) error {
			found, err := i.pods(ctx)
			if err != nil {
				return err
			}
			for _, pods := range found {
				for _, pod := range pods {
					if before, was := restarts[pod.UID]; was && (pod.Status.ContainerStatuses[0].RestartCount == before || !ready(pod)) {
						return fmt.Errorf("%s has not started again", pod.Name)
					}
				}
			}
			return nil
		})
	}
	return killed
}

// kill kills the processes of a container, as a lack of memory would.
func kill(t *testing.T, container string) {
	t.Helper()
	found := processes(t, container)
	if len(found) == 0 {
		t.Errorf("no process of the container %s", container)
	}
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
}

// processes returns those of a container, by the control group that is named after it.
func processes(t *testing.T, container string) (all []int) {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		text, err := os.ReadFile(group)
		if err != nil || !strings.Contains(string(text), container) {
			continue // it has ended meanwhile, or is another's
		}
		var pid int
		if _, err := fmt.Sscanf(group, "/proc/%d/cgroup", &pid); err != nil {
			t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

func containerOf(pod corev1.Pod) string {
	return strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
}

// restartAPIServer returns when kube-apiserver was ready again.
func (i *installation) restartAPIServer(t *testing.T) []time.Time {
	if err := i.cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	i.settled(t, nil)
	return []time.Time{up}
}
