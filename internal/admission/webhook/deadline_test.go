package webhook_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/targets"
)

// hanging never answers.
type hanging struct{}

func (hanging) Review(ctx context.Context, _ authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	<-ctx.Done()
	return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
}

// The API server gets the reason of a missing decision before its timeout.
func TestAnAnswerComesInTime(t *testing.T) {
	c := newCluster()
	registry := prometheus.NewRegistry()
	handler := webhook.New(webhook.Needs{ServiceAccounts: accounts{c}, Profiles: profiled{c}, Identities: identities{c}, RuntimeClasses: classes{c}, Namespaces: namespaces{c}, CredentialSpecs: specs{c}, Authorizer: hanging{},
		Adapters: targets.For, Agent: agent, Log: slog.New(slog.DiscardHandler), Now: time.Now, Recorder: webhook.NewRecorder(registry)})
	w := post(handler, webhook.PodsPath+"?timeout=100ms", sent{resource: "pods", object: podJSON}.body(t))
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d %s", w.Code, w.Body)
	}
	if response := answered(t, w.Body.Bytes()); response.Allowed || response.Result.Code != 500 {
		t.Errorf("%+v, want 500", response)
	}
	post(handler, webhook.PodsPath, nil)
	if got, err := testutil.GatherAndCount(registry, "credence_admission_requests_total"); got != 72 || err != nil {
		t.Errorf("%d series, %v, want one for each handler and outcome", got, err)
	}
	if problems, err := testutil.GatherAndLint(registry); len(problems) > 0 || err != nil {
		t.Errorf("%v %v", problems, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newCluster()
	handler := c.handler()
	body := sent{resource: "pods", object: podJSON}.body(t)
	var group sync.WaitGroup
	for range 400 {
		group.Go(func() {
			if w := post(handler, webhook.PodsPath, body); w.Code != http.StatusOK || !answered(t, w.Body.Bytes()).Allowed {
				t.Errorf("HTTP %d %s", w.Code, w.Body)
			}
		})
	}
	group.Wait()
	if c.reviews.Load() > 40 {
		t.Errorf("%d reviews of one right for 400 pods at once", c.reviews.Load())
	}
}
