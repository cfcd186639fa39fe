package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/deploy"
)

const (
	// aloneSpecs are how many GMSACredentialSpecs there are where policies do the webhook's work: their cost grows with them.
	aloneSpecs = 100
	// aloneAtATime are how many pods are created at a time: each takes kube-apiserver tens of milliseconds.
	aloneAtATime = 4
	// plainLimit is how much CPU the webhooks and the policy may add to a pod without an account, as most are.
	plainLimit = 500 * time.Microsecond
	// byAlone is the label of pods about which the policies without a webhook decide.
	byAlone = "alone"
)

// measureGMSAAlone creates pods with an account and without, as dry runs, about which deploy/options/gmsa-without-webhook.yaml decides,
// beside pods about which the webhooks and the policy do.
func measureGMSAAlone(ctx context.Context, s settings, p plane, t *table) error {
	w, err := newGMSAWorld(ctx, p)
	if err != nil {
		return err
	}
	defer w.remove()
	for i := gmsaSpecs; i < aloneSpecs; i++ {
		if err := w.createSpec(ctx, i); err != nil {
			return err
		}
	}
	if err := w.installAlone(ctx); err != nil {
		return err
	}
	kube, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	s.round, s.rounds = 2*s.round, max(2, s.rounds/2)
	var subjects []subject
	for _, by := range []string{byNone, byOurs, byAlone} {
		account, plain := subject{name: "account" + by, once: w.gmsaDryRun(by), pids: []int{kube}}, subject{name: "plain" + by, once: w.plainDryRun(by), pids: []int{kube}}
		if by == byOurs {
			account.aside, plain.aside = []int{w.ours}, []int{w.ours}
		}
		subjects = append(subjects, account, plain)
	}
	results, err := rounds(ctx, s, aloneAtATime, subjects)
	if err != nil {
		return err
	}
	gmsaAloneRows(t, results)
	return nil
}

// gmsaAloneRows shows what the policies without a webhook add to each kind of pod beside all that is installed otherwise; and what that adds to
// a pod that it has nothing to decide about, beside a limit.
func gmsaAloneRows(t *table, results map[string]result) {
	for _, kind := range []struct{ name, what string }{{"account", "pod with an account"}, {"plain", "pod without one"}} {
		bare, ours, alone := results[kind.name+byNone], results[kind.name+byOurs], results[kind.name+byAlone]
		t.add(row{
			what: fmt.Sprintf("gMSA without a webhook, %d objects: CPU added per %s", aloneSpecs, kind.what), unit: "µs",
			ours: micro(alone.cpu - bare.cpu), peer: "webhooks and policy", theirs: micro(ours.cpu + ours.aside - bare.cpu),
		})
	}
	bare, ours := results["plain"+byNone], results["plain"+byOurs]
	t.add(row{
		what: fmt.Sprintf("gMSA webhooks and policy, %d objects: CPU added per pod without an account", aloneSpecs), unit: "µs",
		ours: micro(ours.cpu + ours.aside - bare.cpu), peer: "limit", theirs: micro(plainLimit), target: atMost(1),
	})
}

// installAlone has the policies decide about pods with a label, and waits until both do.
func (w *gmsaWorld) installAlone(ctx context.Context) error {
	others, err := deploy.Others(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.ReviewPaths)
	if err != nil {
		return err
	}
	pods, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&registrationv1.MatchResources{NamespaceSelector: w.here(), ObjectSelector: labelled([]string{byAlone})})
	if err != nil {
		return err
	}
	var objects []ctrl.Object
	for _, o := range others {
		o.SetName(w.namespace + "-" + o.GetName())
		if strings.HasSuffix(o.GetKind(), "Binding") {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
			if err := unstructured.SetNestedField(o.Object, w.namespace+"-"+name, "spec", "policyName"); err != nil {
				return err
			}
			if err := unstructured.SetNestedMap(o.Object, pods, "spec", "matchResources"); err != nil {
				return err
			}
		}
		objects = append(objects, o)
	}
	remove, err := w.install(ctx, objects...)
	if err != nil {
		return err
	}
	w.stops = append(w.stops, remove)
	filled := w.gmsaDryRun(byAlone)
	wrong := bytes.Replace(w.gmsaPod(byAlone, gmsaAccount(0)), []byte(`"gmsaCredentialSpecName"`), []byte(`"gmsaCredentialSpec":"{}","gmsaCredentialSpecName"`), 1)
	return until(ctx, "the policies decide", 30*time.Second, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, err := w.post(ctx, w.podsURL("?dryRun=All"), wrong); err == nil || !strings.Contains(err.Error(), "credence-gmsa-contents' denied") {
			return false, err
		}
		return true, filled(ctx)
	})
}

// plainDryRun creates a pod without an account, and does not store it.
func (w *gmsaWorld) plainDryRun(by string) func(context.Context) error {
	body := bytes.Replace(w.gmsaPod(by, gmsaAccount(0)), []byte(windowsOptions(w.spec(0))), []byte("{}"), 1)
	return func(ctx context.Context) error { return w.createPod(ctx, w.podsURL("?dryRun=All"), body, 0) }
}
