package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// webhookConcurrencies are how many pods are created at a time.
var webhookConcurrencies = []int{1, 16}

// measureWebhook measures what an admitted pod costs our webhook, beside one that decodes the same review and admits it. Both are
// processes of their own, called by the same kube-apiserver, about the same pods of the same service account: a label of the pod
// selects which of them. The pods are dry runs, which are reviewed like any other and not stored.
func measureWebhook(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled})
	if err != nil {
		return err
	}
	defer remove()
	ours, noop, stop, err := w.startWebhooks(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, workers := range webhookConcurrencies {
		results, err := rounds(ctx, s, workers, []subject{
			{name: "ours", once: w.dryRun("ours", true), pids: []int{ours}},
			{name: "noop", once: w.dryRun("noop", false), pids: []int{noop}},
		})
		if err != nil {
			return err
		}
		what, peer := fmt.Sprintf("webhook, %d pods at a time: ", workers), "webhook that does nothing"
		mine, theirs := results["ours"], results["noop"]
		t.add(row{what: what + "CPU per admitted pod", unit: "µs", ours: micro(mine.cpu), peer: peer, theirs: micro(theirs.cpu), target: atMost(1.5)})
		t.add(row{what: what + "pods per second", ours: mine.perSecond, peer: peer, theirs: theirs.perSecond})
		t.add(row{what: what + "p99 of creating a pod", unit: "ms", ours: mine.p99.Seconds() * 1e3, peer: peer, theirs: theirs.p99.Seconds() * 1e3})
	}
	return nil
}

// startWebhooks starts both, and waits until each is called.
func (w *world) startWebhooks(ctx context.Context) (ours, noop int, stop func(), err error) {
	var stops []func()
	stopAll := func() {
		for _, s := range stops {
			s()
		}
	}
	defer func() {
		if err != nil {
			stopAll()
		}
	}()
	if err := w.preparePods(ctx); err != nil {
		return 0, 0, nil, err
	}
	account := object("v1", "ServiceAccount", podAccount, nil)
	account["metadata"].(map[string]any)["annotations"] = map[string]string{v1alpha1.AnnotationAccountIdentities: podIdentity}
	if _, err := w.create(ctx, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts", account); err != nil {
		return 0, 0, nil, err
	}
	restore, err := w.exemptPods(ctx)
	if err != nil {
		return 0, 0, nil, err
	}
	stops = append(stops, restore)
	port, err := freePorts(1)
	if err != nil {
		return 0, 0, nil, err
	}
	copied, err := startCopy(ctx, w.plane, "webhook", map[string]string{"--port": port, "--health-port": "0"})
	if err != nil {
		return 0, 0, nil, err
	}
	stops = append(stops, copied.stop)
	folder := filepath.Join(w.plane.dir, "pki", "webhook")
	nothing, err := startPeer(ctx, noopCommand, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return 0, 0, nil, err
	}
	stops = append(stops, nothing.stop)
	for label, address := range map[string]string{"ours": net.JoinHostPort("127.0.0.1", port), "noop": nothing.ready} {
		unregister, err := w.registerWebhook(ctx, label, "https://"+address+"/default-pods")
		if err != nil {
			return 0, 0, nil, err
		}
		stops = append(stops, unregister)
	}
	err = until(ctx, "both webhooks are called", 30*time.Second, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		seen, err := get(ctx, w.metrics, "https://"+nothing.ready+"/")
		if err != nil {
			return false, err
		}
		if err := w.dryRun("noop", false)(ctx); err != nil {
			return false, err
		}
		if err := w.dryRun("ours", true)(ctx); err != nil {
			return false, err
		}
		again, err := get(ctx, w.metrics, "https://"+nothing.ready+"/")
		return !bytes.Equal(seen, again), err
	})
	return copied.pid, nothing.pid, stopAll, err
}

// exemptPods has the plane's own webhook leave the pods of the namespace alone until restore is called.
func (w *world) exemptPods(ctx context.Context) (restore func(), err error) {
	var installed registrationv1.MutatingWebhookConfiguration
	if err := w.get(ctx, "", identityWebhook, &installed); err != nil {
		return nil, err
	}
	exempt := installed.DeepCopy()
	for n := range exempt.Webhooks {
		w.leaveOut(&exempt.Webhooks[n].NamespaceSelector)
	}
	return w.change(ctx, change{&installed, exempt})
}

// identityWebhook is the name of the plane's webhook configuration: deploy/base/53-identity-webhooks.yaml.
const identityWebhook = "credence-webhook"

// registerWebhook has kube-apiserver call a webhook for pods of the namespace with a label, as it calls the plane's own.
func (w *world) registerWebhook(ctx context.Context, label, url string) (func(), error) {
	var installed registrationv1.MutatingWebhookConfiguration
	if err := w.get(ctx, "", identityWebhook, &installed); err != nil {
		return nil, err
	}
	for _, hook := range installed.Webhooks {
		if hook.Name != "default-pods.identity.credence.dev" {
			continue
		}
		hook.ClientConfig.URL = ptr.To(url)
		hook.NamespaceSelector = w.here()
		hook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"bench": label}}
		configuration := &registrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + label},
			Webhooks:   []registrationv1.MutatingWebhook{hook},
		}
		if err := w.objects.Create(ctx, configuration); err != nil {
			return nil, err
		}
		return func() { _ = w.objects.Delete(context.WithoutCancel(ctx), configuration) }, nil
	}
	return nil, fmt.Errorf("the plane has no webhook for pods")
}

// dryRun creates a pod without storing it; with identities the answer must have the volume of one.
func (w *world) dryRun(label string, identities bool) func(context.Context) error {
	url, body := w.podsURL("?dryRun=All"), podBody(label)
	return func(ctx context.Context) error {
		answer, err := w.post(ctx, url, body)
		if err == nil && bytes.Contains(answer, []byte(`"name":"`+volumePrefix)) != identities {
			err = fmt.Errorf("a pod for the webhook %s was answered wrongly: %.300s", label, answer)
		}
		return err
	}
}
