package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// podsAtOnce are created at the same moment.
	podsAtOnce = 400
	// podAccount is their service account, podIdentity what it gives them.
	podAccount, podIdentity = "bench", "bench-aws"
)

// measurePods creates pods at once in a namespace where they get identities, and in one where they do not. The service account is
// annotated just before: neither the webhook nor the agent knows of it.
func measurePods(ctx context.Context, _ settings, p plane, t *table) error {
	ours, err := burst(ctx, p, true)
	if err != nil {
		return err
	}
	plain, err := burst(ctx, p, false)
	if err != nil {
		return err
	}
	what, peer := fmt.Sprintf("%d pods at once: ", podsAtOnce), "pods without identities"
	t.add(row{what: what + "created", ours: float64(podsAtOnce - ours.failed), peer: "all", theirs: podsAtOnce, target: atLeast(1)})
	t.add(row{what: what + "until all are created", unit: "s", ours: ours.created.Seconds(), peer: peer, theirs: plain.created.Seconds()})
	t.add(row{what: what + "slowest", unit: "s", ours: ours.slowest.Seconds(), peer: "time limit of the webhook", theirs: webhookSeconds, target: atMost(1)})
	t.add(row{what: what + "until all gates are released", unit: "s", ours: ours.released.Seconds(), peer: peer + ", created", theirs: plain.created.Seconds()})
	return nil
}

// webhookSeconds is how long kube-apiserver waits for the webhook: deploy/base/53-identity-webhooks.yaml.
const webhookSeconds = 10

// bursted is what became of many pods: how many could not be created, and when all were, and all had lost their gates.
type bursted struct {
	failed                          int
	created, p99, slowest, released time.Duration
}

func burst(ctx context.Context, p plane, identities bool) (bursted, error) {
	labels := map[string]string{}
	if identities {
		labels[v1alpha1.LabelNamespaceIdentities] = v1alpha1.NamespaceEnabled
	}
	w, remove, err := newWorld(ctx, p, labels)
	if err != nil {
		return bursted{}, err
	}
	defer remove()
	if err := w.preparePods(ctx); err != nil {
		return bursted{}, err
	}
	health, err := p.healthURL("agent")
	if err != nil {
		return bursted{}, err
	}
	before, err := w.gatesReleased(ctx, health)
	if err != nil {
		return bursted{}, err
	}
	account := object("v1", "ServiceAccount", podAccount, nil)
	if identities {
		account["metadata"].(map[string]any)["annotations"] = map[string]string{v1alpha1.AnnotationAccountIdentities: podIdentity}
	}
	if _, err := w.create(ctx, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts", account); err != nil {
		return bursted{}, err
	}
	begin := time.Now()
	result, err := w.createAtOnce(ctx, podBody("ours"))
	if err != nil || !identities {
		return result, err
	}
	gated := float64(podsAtOnce - result.failed)
	err = until(ctx, "all gates are released", 2*time.Minute, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		released, err := w.gatesReleased(ctx, health)
		return released-before >= gated, err
	})
	result.released = time.Since(begin)
	if err != nil {
		return result, err
	}
	return result, w.checkPods(ctx, int(gated))
}

// preparePods makes an identity that the account may use and the agent may mint, and waits a moment until both rights are known.
func (w *world) preparePods(ctx context.Context) error {
	if err := w.identity(ctx, podIdentity); err != nil {
		return err
	}
	if err := w.agentMayMint(ctx); err != nil {
		return err
	}
	account := map[string]any{"kind": "ServiceAccount", "name": podAccount, "namespace": w.namespace}
	if err := w.bind(ctx, "account-uses", "ClusterRole", "credence:workloadidentities:user", account); err != nil {
		return err
	}
	return pause(ctx, 3*time.Second)
}

func (w *world) gatesReleased(ctx context.Context, health string) (float64, error) {
	metrics, err := get(ctx, w.metrics, health+"/metrics")
	return sum(metrics, "credence_agent_gates_released_total"), err
}

// createAtOnce creates all pods, each in a request of its own.
func (w *world) createAtOnce(ctx context.Context, body []byte) (bursted, error) {
	var group sync.WaitGroup
	took, errs := make([]time.Duration, podsAtOnce), make([]error, podsAtOnce)
	begin := time.Now()
	for i := range podsAtOnce {
		group.Go(func() {
			_, errs[i] = w.post(ctx, w.podsURL(""), body)
			took[i] = time.Since(begin)
		})
	}
	group.Wait()
	slices.Sort(took)
	result := bursted{created: time.Since(begin), p99: took[podsAtOnce*99/100], slowest: took[podsAtOnce-1]}
	for _, err := range errs {
		if err != nil {
			if result.failed++; result.failed == podsAtOnce {
				return result, fmt.Errorf("no pod could be created: %w", err)
			}
		}
	}
	return result, nil
}

// checkPods sees that all pods are there, with the volume of their identity and without a gate.
func (w *world) checkPods(ctx context.Context, want int) error {
	var pods corev1.PodList
	if err := w.objects.List(ctx, &pods, ctrl.InNamespace(w.namespace)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if len(pod.Spec.SchedulingGates) > 0 || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) }) {
			return fmt.Errorf("pod %s has a gate, or has no identity", pod.Name)
		}
	}
	if len(pods.Items) != want {
		return fmt.Errorf("there are %d pods, want %d", len(pods.Items), want)
	}
	return nil
}

// volumePrefix begins the names of the webhook's volumes.
const volumePrefix = "workload-identity-"

func (w *world) podsURL(query string) string {
	return w.cluster + "/api/v1/namespaces/" + w.namespace + "/pods" + query
}

// podBody is a pod of two containers as a Deployment has them, with a label that names the webhook it is for.
func podBody(webhook string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"bench-","labels":{"app":"service","bench":"` + webhook + `"}},
		"spec":{"serviceAccountName":"` + podAccount + `","securityContext":{"runAsNonRoot":true},"volumes":[{"name":"data","emptyDir":{}}],
		"containers":[{"name":"main",` + containerFields + `,{"name":"proxy",` + containerFields + `]}}`)
}

const (
	probe         = `{"httpGet":{"path":"/readyz","port":8080},"periodSeconds":10}`
	serviceFields = `"image":"registry.example.com/team/service:v1.2.3","ports":[{"containerPort":8080}],
		"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"DB","valueFrom":{"secretKeyRef":{"name":"db","key":"url"}}}],
		"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},
		"volumeMounts":[{"name":"data","mountPath":"/data"}],"livenessProbe":` + probe + `,"readinessProbe":` + probe
	containerFields = serviceFields + `,"securityContext":{"capabilities":{"drop":["ALL"]},"allowPrivilegeEscalation":false}}`
)
