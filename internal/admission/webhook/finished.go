package webhook

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/admission/pods"
)

const (
	// keptFacts is for how long a finished pod is compared with what was read for a new one. In between, the API server calls the other webhooks.
	keptFacts = 2 * time.Second
	maxFacts  = 4096
)

// finished refuses a pod that lacks something after all mutating webhooks, by the decision that its mutating review makes. It never changes the pod.
// Facts of a moment ago may admit a pod. Only facts that are read now may refuse one.
func (p *podRules) finished(ctx context.Context, namespace string, pod *corev1.Pod, ephemeral []string) (pods.Result, error) {
	r := pods.Request{Namespace: namespace, Pod: pod, Ephemeral: ephemeral, NoIdentities: p.noIdentities, Adapters: p.adapters}
	if p.recent.recall(&r) && pods.Incomplete(r) == nil {
		return pods.Result{}, nil
	}
	r, denial, err := p.gather(ctx, namespace, pod, ephemeral)
	if denial == nil && err == nil {
		denial = pods.Incomplete(r)
	}
	return pods.Result{Denial: denial}, err
}

// recentFacts remembers what was read about the service accounts of new pods. Facts of an account are never older than those by which this process
// decided on a new pod of it.
type recentFacts struct {
	now func() time.Time

	mu sync.Mutex
	of map[[2]string]recentFact // by namespace and name of the account
}

type recentFact struct {
	pods.Request           // without the pod
	began        time.Time // when the first fact was read
}

func newRecentFacts(now func() time.Time) *recentFacts {
	return &recentFacts{now: now, of: map[[2]string]recentFact{}}
}

// remember keeps the facts about the account of a new pod.
func (f *recentFacts) remember(r pods.Request, began time.Time) {
	if r.Ephemeral != nil { // only the identities that its pod has were read
		return
	}
	r.Pod = nil
	key := [2]string{r.Namespace, r.Account.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[key].began.After(began) {
		return
	}
	if len(f.of) >= maxFacts {
		maps.DeleteFunc(f.of, func(_ [2]string, fact recentFact) bool { return f.over(fact) })
	}
	if len(f.of) >= maxFacts {
		clear(f.of)
	}
	f.of[key] = recentFact{r, began}
}

// recall completes a request, and reports whether it did.
func (f *recentFacts) recall(r *pods.Request) bool {
	f.mu.Lock()
	fact, known := f.of[[2]string{r.Namespace, r.Pod.Spec.ServiceAccountName}]
	f.mu.Unlock()
	if !known || r.Ephemeral != nil || f.over(fact) {
		return false
	}
	r.Account, r.Profile, r.Delivery = fact.Account, fact.Profile, fact.Delivery
	return !facts.NeedsNodes(*r)
}

func (f *recentFacts) over(fact recentFact) bool { return f.now().Sub(fact.began) >= keptFacts }
