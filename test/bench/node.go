package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// nodePods are on the node.
	nodePods = 500
	// nodeName is a Node without a kubelet.
	nodeName = "bench-node"
	// The limits of the driver, and of what a volume adds to the start of a pod.
	nodeMB, nodePercent, nodeMilliseconds = 60, 1, 50
	// republished is how often a kubelet publishes each volume again.
	republished = time.Minute
)

// measureNode runs the driver of volumes on a node of many pods. The pods are objects that are bound to a Node, and the kubelet is this program: it calls
// the driver as a kubelet does, with tokens of the pods.
func measureNode(ctx context.Context, s settings, p plane, t *table) error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: volumes of a node are not measured: that needs root, on Linux")
		return nil
	}
	w, remove, err := newWorld(ctx, p, nil)
	if err != nil {
		return err
	}
	defer remove()
	n, stop, err := w.startNode(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	tokens, err := followTokens(p, w.namespace)
	if err != nil {
		return err
	}
	defer tokens.close()
	mounts, requests, err := n.mountAll(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	idle, err := watched(map[string]int{"driver": n.pid}, func() (int, error) { return n.republish(ctx, idleWindow) })
	if err != nil {
		return err
	}
	memory, err := residentMB(n.pid)
	if err != nil {
		return err
	}
	issued, writes, err := tokens.count()
	if err != nil {
		return err
	}
	if issued != nodePods+len(requests) {
		return fmt.Errorf("%d tokens were issued, want one for each of %d pods, and %d for comparison", issued, nodePods, len(requests))
	}
	what := fmt.Sprintf("node of %d pods, simulated kubelet: ", nodePods)
	mount, request := median(mounts, milliseconds), median(requests, milliseconds)
	t.add(row{what: what + "memory", unit: "MB", ours: memory, peer: "limit", theirs: nodeMB, target: atMost(1)})
	t.add(row{what: what + "CPU while no token is due, of a core", unit: "%", ours: 100 * idle.cpu["driver"].Seconds() / idle.took.Seconds(), peer: "limit", theirs: nodePercent, target: atMost(1)})
	t.add(row{what: what + "a volume is mounted", unit: "ms", ours: mount, peer: "token request", theirs: request})
	t.add(row{what: what + "a volume is mounted, less the token request", unit: "ms", ours: max(0, mount-request), peer: "limit", theirs: nodeMilliseconds, target: atMost(1)})
	t.add(row{what: fmt.Sprintf("%swrites to the API for %d tokens", what, issued), ours: float64(writes), peer: "one for each, in Secrets", theirs: float64(issued), target: atMost(0)})
	return n.measureGuard(ctx, s, t)
}

// node is the driver with the pods whose volumes it has.
type node struct {
	world  *world
	folder string
	pid    int
	driver spec.NodeClient
	// caller makes the same requests as the driver.
	caller *http.Client
	pods   []*corev1.Pod
	// tokens are those of the pods, as kubelets have them.
	tokens []string
}

// startNode makes the pods, and starts the driver in mounts of its own, which end with it.
func (w *world) startNode(ctx context.Context, s settings) (_ *node, stop func(), err error) {
	if err := w.identity(ctx, podIdentity); err != nil {
		return nil, nil, err
	}
	if _, err := w.create(ctx, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts", object("v1", "ServiceAccount", podAccount, nil)); err != nil {
		return nil, nil, err
	}
	account := map[string]any{"kind": "ServiceAccount", "name": podAccount, "namespace": w.namespace}
	if err := w.bind(ctx, "account-uses", "ClusterRole", "credence:workloadidentities:user", account); err != nil {
		return nil, nil, err
	}
	n := &node{world: w}
	config, err := clientcmd.BuildConfigFromFlags("", w.plane.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if n.caller, err = rest.HTTPClientFor(rest.AnonymousClientConfig(config)); err != nil {
		return nil, nil, err
	}
	ofNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := w.objects.Create(ctx, ofNode); err != nil {
		return nil, nil, err
	}
	var stops []func()
	stop = func() {
		for i := range stops {
			stops[len(stops)-1-i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	stops = append(stops, func() {
		ctx := context.WithoutCancel(ctx)
		_ = w.objects.DeleteAllOf(ctx, &corev1.Pod{}, ctrl.InNamespace(w.namespace), ctrl.GracePeriodSeconds(0))
		_ = w.objects.Delete(ctx, ofNode)
	})
	if err := n.makePods(ctx); err != nil {
		return nil, nil, err
	}
	if n.folder, err = os.MkdirTemp("", "node"); err != nil {
		return nil, nil, err
	}
	stops = append(stops, func() { _ = os.RemoveAll(n.folder) })
	driver := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", filepath.Join(s.bin, "credence-node"), "csi", "--node-name", nodeName, "--kubelet-dir", n.folder, "--kubeconfig", w.plane.Kubeconfig)
	var said bytes.Buffer
	driver.Stderr = &said
	detach(driver)
	if err := driver.Start(); err != nil {
		return nil, nil, err
	}
	stops = append(stops, func() { _, _ = driver.Process.Kill(), driver.Wait() })
	n.pid = driver.Process.Pid // unshare becomes the program
	connection, err := grpc.NewClient("unix://"+filepath.Join(n.folder, "plugins_registry", "credence.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, func() { _ = connection.Close() })
	n.driver = spec.NewNodeClient(connection)
	err = until(ctx, "the driver answers", time.Minute, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := n.driver.NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
		return err == nil, err
	})
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("%w: %s", err, said.String())
	}
	return n, stop, nil
}

// makePods makes the pods, and a token for each.
func (n *node) makePods(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "bench: %d pods of a node are made\n", nodePods)
	n.pods, n.tokens = make([]*corev1.Pod, nodePods), make([]string, nodePods)
	return many(ctx, nodePods, createWorkers, func(ctx context.Context, i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.world.namespace, Name: fmt.Sprintf("pod-%03d", i)}}
		pod.Spec.ServiceAccountName, pod.Spec.NodeName = podAccount, nodeName
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example.com/team/service:v1.2.3"}}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if err := n.world.objects.Create(ctx, pod); err != nil {
			return err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: podAccount}}
		token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}}}
		if err := n.world.objects.SubResource("token").Create(ctx, account, token); err != nil {
			return err
		}
		n.pods[i], n.tokens[i] = pod, token.Status.Token
		return nil
	})
}

// mountAll mounts the volumes one after the other. Every second pod has the same token request made with its token beforehand, so that the
// servers have seen the token: its mount does not count.
func (n *node) mountAll(ctx context.Context) (mounts, requests []time.Duration, err error) {
	// A right counts a moment after it was given.
	if err := until(ctx, "the account may use the identity", time.Minute, time.Second, func(ctx context.Context) (bool, error) {
		err := n.publish(ctx, 0)
		return err == nil, err
	}); err != nil {
		return nil, nil, err
	}
	for i := 1; i < nodePods; i++ {
		begun := time.Now()
		if i%2 == 0 {
			if err := n.request(ctx, i); err != nil {
				return nil, nil, err
			}
			requests = append(requests, time.Since(begun))
		}
		if err := n.publish(ctx, i); err != nil {
			return nil, nil, err
		}
		if i%2 == 1 {
			mounts = append(mounts, time.Since(begun))
		}
	}
	return mounts, requests, nil
}

// publish has the driver publish the volume of a pod.
func (n *node) publish(ctx context.Context, i int) error {
	pod := n.pods[i]
	target := filepath.Join(n.folder, "pods", string(pod.UID), "volumes", "kubernetes.io~csi", "identity", "mount")
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	tokens, err := json.Marshal(map[string]any{"": map[string]any{"token": n.tokens[i], "expirationTimestamp": time.Now().Add(time.Hour)}})
	if err != nil {
		return err
	}
	const ofKubelet = "csi.storage.k8s.io/"
	_, err = n.driver.NodePublishVolume(ctx, &spec.NodePublishVolumeRequest{
		VolumeId: "csi-" + string(pod.UID), TargetPath: target, Readonly: true,
		VolumeCapability: &spec.VolumeCapability{
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		VolumeContext: map[string]string{
			v1alpha1.VolumeAttributeIdentity: podIdentity, ofKubelet + "ephemeral": "true", ofKubelet + "serviceAccount.name": podAccount,
			ofKubelet + "pod.name": pod.Name, ofKubelet + "pod.namespace": pod.Namespace, ofKubelet + "pod.uid": string(pod.UID),
		},
		Secrets: map[string]string{ofKubelet + "serviceAccount.tokens": string(tokens)},
	})
	return err
}

// republish publishes each volume once a minute, one after the other.
func (n *node) republish(ctx context.Context, length time.Duration) (published int, err error) {
	tick := time.NewTicker(republished / nodePods)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < length; published++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return published, ctx.Err()
		}
		if err := n.publish(ctx, published%nodePods); err != nil {
			return published, err
		}
	}
	return published, nil
}

// request makes the token request that the driver makes.
func (n *node) request(ctx context.Context, i int) error {
	url := n.world.cluster + fmt.Sprintf(identityPath, n.world.namespace) + "/" + podIdentity + "/selftoken"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(ourRequest)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+n.tokens[i])
	_, err = send(n.caller, request, http.StatusCreated)
	return err
}

// tokenAudit reads from the audit log of kube-apiserver what was issued and written in a namespace.
type tokenAudit struct {
	path, namespace string
	file            *os.File
}

// followTokens begins at the end of the log.
func followTokens(p plane, namespace string) (*tokenAudit, error) {
	a := &tokenAudit{path: filepath.Join(p.dir, "devcluster", "audit.log"), namespace: namespace}
	var err error
	if a.file, err = os.Open(a.path); err != nil {
		return nil, err
	}
	if _, err := a.file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

func (a *tokenAudit) close() { _ = a.file.Close() }

// count returns how many tokens were issued, and how many other requests have written something.
func (a *tokenAudit) count() (issued, writes int, err error) {
	text, err := io.ReadAll(a.file)
	if err != nil {
		return 0, 0, err
	}
	mine, err := a.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	if written, err := os.Stat(a.path); err != nil || !os.SameFile(mine, written) {
		return 0, 0, errors.Join(fmt.Errorf("%s was renamed meanwhile", a.path), err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(a.namespace)) {
			continue
		}
		var event struct {
			Stage, Verb    string
			ObjectRef      struct{ Namespace, Subresource string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return 0, 0, fmt.Errorf("decode audit event: %w", err)
		}
		if event.Stage != "ResponseComplete" || event.ObjectRef.Namespace != a.namespace || event.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		switch event.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			if event.ObjectRef.Subresource == "selftoken" {
				issued++
			} else {
				writes++
			}
		}
	}
	return issued, writes, nil
}
