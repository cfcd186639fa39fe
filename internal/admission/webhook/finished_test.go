package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
)

const finishedPods = webhook.FinishedPath + webhook.PodsPath

// stripped is the pod of podJSON after a webhook that has written its containers anew.
func stripped(t *testing.T, pod string) string {
	t.Helper()
	before, _, found := strings.Cut(pod, `"containers":[`)
	if !found {
		t.Fatal("no containers")
	}
	return before + `"containers":[{"name":"main","image":"picker"}]` + pod[strings.Index(pod, "]}]")+3:]
}

func TestFinishedPods(t *testing.T) {
	const whole, bare, other = "whole", "bare", "of another account"
	for name, test := range map[string]struct {
		pod string
		// meanwhile changes the cluster between the two reviews of the pod.
		meanwhile func(*cluster)
		replica   bool // the second review comes to another process
		code      int32
		want      string
	}{
		"whole":                         {pod: whole},
		"whole, by memory":              {pod: whole, meanwhile: outage("serviceaccounts", errors.New("down"))},
		"whole, another replica":        {pod: whole, replica: true},
		"bare":                          {pod: bare, code: 422, want: "the pod lacks spec.containers[main].env[AWS_ROLE_ARN], "},
		"bare, another replica":         {pod: bare, replica: true, code: 422, want: "for service account orchard/app"},
		"bare, refused by live reads":   {pod: bare, meanwhile: outage("serviceaccounts", errors.New("down")), code: 500, want: "down"},
		"identity was taken away":       {pod: podJSON, meanwhile: annotate("")},
		"identity was given":            {pod: podJSON, meanwhile: func(c *cluster) { annotate("banana")(c); c.now = c.now.Add(2 * time.Second) }, code: 422, want: "spec.volumes[workload-identity-"},
		"account was changed by others": {pod: other, code: 403, want: "service account orchard/other does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if name == "identity was given" {
				annotate("")(c)
			}
			handler := c.handler()
			pod := applied(t, podJSON, ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON}))
			switch test.pod {
			case bare:
				pod = stripped(t, pod)
			case other:
				pod = strings.Replace(pod, `"serviceAccountName":"app"`, `"serviceAccountName":"other"`, 1)
			case podJSON:
				pod = podJSON
			}
			if test.meanwhile != nil {
				test.meanwhile(c)
			}
			if test.replica {
				handler = c.handler()
			}
			response := ask(t, handler, finishedPods, sent{resource: "pods", object: pod})
			if response.Patch != nil || response.Warnings != nil || response.Allowed != (test.code == 0) {
				t.Fatalf("%+v", response)
			}
			if test.code != 0 && (response.Result.Code != test.code || !strings.Contains(response.Result.Message, test.want)) {
				t.Errorf("%+v, want %d with %q", response.Result, test.code, test.want)
			}
		})
	}
}

// A pod without identities costs no read if the same process has reviewed it before.
func TestFinishedPodsWithoutIdentities(t *testing.T) {
	c := newCluster()
	annotate("")(c)
	handler := c.handler()
	classed := strings.Replace(podJSON, `"spec":{`, `"spec":{"runtimeClassName":"gvisor",`, 1)
	for _, pod := range []string{podJSON, classed} {
		ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: pod})
	}
	for _, resource := range []string{"serviceaccounts", "serviceaccountprofiles", "namespaces", "workloadidentities", "runtimeclasses"} {
		c.outages[resource] = errors.New("down")
	}
	for _, pod := range []string{podJSON, classed} {
		if response := ask(t, handler, finishedPods, sent{resource: "pods", object: pod}); !response.Allowed {
			t.Errorf("%+v", response.Result)
		}
	}
}

func TestFinishedEphemeralContainers(t *testing.T) {
	handler := newCluster().handler()
	before := applied(t, podJSON, ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON}))
	added := strings.Replace(before, `"containers":`, `"ephemeralContainers":[{"name":"debug"}],"containers":`, 1)
	update := sent{resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, object: added, old: before}
	if response := ask(t, handler, finishedPods, update); response.Allowed || !strings.Contains(response.Result.Message, "spec.ephemeralContainers[debug].env[AWS_ROLE_ARN]") {
		t.Errorf("%+v", response)
	}
	update.object = applied(t, added, ask(t, handler, webhook.PodsPath, update))
	if response := ask(t, handler, finishedPods, update); !response.Allowed {
		t.Errorf("%+v", response.Result)
	}
}
