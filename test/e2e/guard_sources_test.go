package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// tightened is what a container of these tests prints that is not allowed more than the template restricted.
const tightened = "Uid: 65532 65532 65532 65532\nGid: 65532 65532 65532 65532\nCapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2"

// ofPod selects what the runtime has of a pod.
func ofPod(pod string) map[string]string { return map[string]string{"io.kubernetes.pod.name": pod} }

// running are the containers of a pod that run, as the runtime has them.
func running(t *testing.T, runtime cri.RuntimeServiceClient, pod string) ([]*cri.Container, error) {
	t.Helper()
	listed, err := runtime.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}, LabelSelector: ofPod(pod),
	}})
	return listed.GetContainers(), err
}

// startedAgain waits until a container of a pod runs that is not one of those before, and returns what it prints. All of it is the runtime's: the API is away.
func startedAgain(t *testing.T, runtime cri.RuntimeServiceClient, pod string, before []*cri.Container) (printed string) {
	t.Helper()
	eventually(t, func() error {
		containers, err := running(t, runtime, pod)
		if err != nil {
			return err
		}
		for _, c := range containers {
			if slices.ContainsFunc(before, func(b *cri.Container) bool { return b.GetId() == c.GetId() }) {
				continue
			}
			status, err := runtime.ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: c.GetId()})
			if err != nil {
				return err
			}
			log, err := os.ReadFile(status.GetStatus().GetLogPath())
			if err != nil {
				return err
			}
			var lines []string
			for line := range strings.Lines(string(log)) {
				fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4) // time, stream, tag, text
				if text := fields[len(fields)-1]; text != "end" {
					lines = append(lines, text)
					continue
				}
				printed = strings.Join(lines, "\n")
				return nil
			}
		}
		return fmt.Errorf("no new container of pod %s has printed all: %v", pod, containers)
	})
	return printed
}

// removeStatic takes a manifest from the node's kubelet, and waits until its pod is gone: a node has at most 110.
func (p plane) removeStatic(t *testing.T, name string) {
	t.Helper()
	expect(t, os.Remove(filepath.Join(p.Dir, "devcluster", "node", "static-pods", name+".json")))
	p.waitGone(t, name+"-127.0.0.1")
}

// waitGone waits until a mirror pod is gone.
func (p plane) waitGone(t *testing.T, pod string) {
	t.Helper()
	waitFor(t, kubeletPatience, func() error {
		_, err := p.client(t).CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s is still there: %v", pod, err)
		}
		return nil
	})
}

// A kubelet and a guard that start while the API is away, as after a reboot, start the static pods of the node again: one that is allowed with all that it
// wants, another one tightened. One with the root of the host is refused, by the guard's log, and on its mirror pod once the API is back.
func staticPodsWithoutTheAPI(t *testing.T, p plane, digest string, allow func(string)) {
	kubeconfig := filepath.Join(p.Dir, "devcluster", "node", "kubelet.kubeconfig")
	content := need(os.ReadFile(kubeconfig))(t)
	away := strings.Replace(string(content), p.APIServer, "https://127.0.0.1:1", 1)
	if away == string(content) {
		t.Fatalf("%s does not lead to %s", kubeconfig, p.APIServer)
	}
	restart := func(kubeconfigContent string) {
		t.Helper()
		must(t, os.WriteFile(kubeconfig, []byte(kubeconfigContent), 0o600))
		p.killPart(t, "guard")
		p.killPart(t, "kubelet")
	}
	restored := false
	defer func() {
		if !restored {
			restart(string(content))
		}
	}()
	allow("pods:\n- {pod: default/trusted, images: ['" + digest + "']}\n")
	restart(away)

	runtime := p.crictl(t)
	before := map[string][]*cri.Container{}
	for _, pod := range []string{"trusted-127.0.0.1", "weak-127.0.0.1"} {
		eventually(t, func() (err error) { before[pod], err = running(t, runtime, pod); return err })
		if len(before[pod]) == 0 {
			t.Fatalf("pod %s has no container that runs", pod)
		}
		sandbox := before[pod][0].GetPodSandboxId()
		need(runtime.StopPodSandbox(t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: sandbox}))(t)
	}
	p.runStatic(t, hostPod("stowaway"))
	if has := startedAgain(t, runtime, "trusted-127.0.0.1", before["trusted-127.0.0.1"]); !strings.HasPrefix(has, "Uid: 0 0 0 0\n") || !strings.Contains(has, "NoNewPrivs: 0\nSeccomp: 0\nwritten\nproc") {
		t.Errorf("an allowed pod has\n%s", has)
	}
	if has := startedAgain(t, runtime, "weak-127.0.0.1", before["weak-127.0.0.1"]); has != tightened {
		t.Errorf("a static pod has\n%s\nwant\n%s", has, tightened)
	}
	const refusal = "msg=refused pod=default/stowaway-127.0.0.1 "
	eventually(t, func() error {
		if !strings.Contains(p.driverLog(t), refusal) {
			return fmt.Errorf("the log of the node has no %q", refusal)
		}
		return nil
	})
	if containers, err := running(t, runtime, "stowaway-127.0.0.1"); err != nil || len(containers) > 0 {
		t.Errorf("a pod with the root of the host runs: %v, %v", containers, err)
	}
	if _, err := p.client(t).CoreV1().Pods("default").Get(t.Context(), "stowaway-127.0.0.1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the kubelet has reached the API: %v", err)
	}

	restored = true
	restart(string(content))
	p.describedBy(t, "stowaway-127.0.0.1", "CreateContainerError", "the host's / at /host: credence-node guard refuses that by its template restricted")
	p.removeStatic(t, "stowaway")
	allow("pods: []\n")
}

// Pods that the kubelet has of a URL are tightened and refused as those of its files are.
func podsOfAURL(t *testing.T, p plane) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{*askingPod("fetched"), *hostPod("fetched-host")}}
	manifests := jsonOf(t, list)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(manifests)
	}))
	defer server.Close()
	file := filepath.Join(p.Dir, "devcluster", "node", "kubelet.json")
	content := need(os.ReadFile(file))(t)
	var config map[string]any
	must(t, json.Unmarshal(content, &config))
	config["staticPodURL"], config["httpCheckFrequency"] = server.URL, "1s"
	restart := func(content []byte) {
		t.Helper()
		must(t, os.WriteFile(file, content, 0o600))
		p.killPart(t, "kubelet")
	}
	restart(jsonOf(t, config))
	defer func() {
		restart(content)
		p.waitGone(t, "fetched-127.0.0.1")
		p.waitGone(t, "fetched-host-127.0.0.1")
	}()

	if has := strings.Join(p.confined(t, "fetched-127.0.0.1"), "\n"); has != tightened {
		t.Errorf("a pod of a URL has\n%s\nwant\n%s", has, tightened)
	}
	p.describedBy(t, "fetched-host-127.0.0.1", "CreateContainerError", "the host's / at /host: credence-node guard refuses that by its template restricted")
	sandboxes, err := p.crictl(t).ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: ofPod("fetched-127.0.0.1")}})
	if err != nil || len(sandboxes.GetItems()) != 1 || sandboxes.GetItems()[0].GetAnnotations()["kubernetes.io/config.source"] != "http" {
		t.Errorf("the sandbox of a pod of a URL: %v, %v", sandboxes, err)
	}
}
