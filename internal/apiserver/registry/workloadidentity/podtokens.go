package workloadidentity

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// maxPodTokens bounds the identities that are remembered; the one with the oldest token is forgotten first.
const maxPodTokens = 10_000

// podTokens remembers when the last token of an identity expires that a pod got for itself: no Secret has it, so no agent reports it.
// Each replica has its own, and a restart forgets it.
type podTokens struct {
	mu    sync.Mutex
	until *lru.Cache // time.Time by types.UID
}

func newPodTokens(size int) *podTokens { return &podTokens{until: lru.New(size)} }

func (p *podTokens) add(uid types.UID, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.until.Get(uid); !ok || known.(time.Time).Before(until) {
		p.until.Add(uid, until)
	}
}

// inUse is a warning for a user who deletes an identity; empty if no pod is known to have a token of its own.
func (p *podTokens) inUse(wi *v1alpha1.WorkloadIdentity, now time.Time) string {
	until, ok := p.until.Get(wi.UID)
	if !ok || !now.Before(until.(time.Time)) {
		return ""
	}
	return fmt.Sprintf("WorkloadIdentity %s/%s is in use: pods get its tokens without a Secret; they get no more, and the last of their tokens expires at %s",
		wi.Namespace, wi.Name, until.(time.Time).UTC().Format(time.RFC3339))
}

// IssuedToPod notes a token that a pod got for itself.
func (r *REST) IssuedToPod(uid types.UID, until time.Time) { r.podTokens.add(uid, until) }
