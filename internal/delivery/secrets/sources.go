package secrets

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
)

// Data requests the data of the Secret to which the CredentialsBinding with a uid refers; an empty one is that of no precondition. The object is
// nil, or the one that refers to the binding. Its errors are those of the API.
type Data interface {
	Data(ctx context.Context, binding types.NamespacedName, uid types.UID, object *v1alpha1.ContextObject) (map[string][]byte, error)
}

const (
	// copyEvery is how often the data of an origin is requested, however many Secrets have it.
	copyEvery = 5 * time.Second
	// confirmAfter is after how long a denial is repeated before it counts: a kube-apiserver that has just started denies what it has not
	// read the roles of.
	confirmAfter = 2 * time.Second
	// unansweredFor is for how long a request without an answer is not repeated.
	unansweredFor = 15 * time.Second
	// unusedFor is for how long the data of an origin is kept that no Secret needs.
	unusedFor = time.Minute
)

// origin is what data is requested of: a binding, for a context object or for none.
type origin struct {
	binding types.NamespacedName
	object  v1alpha1.ContextObject
}

func (s *state) origin() origin {
	from := origin{binding: s.request.Binding}
	if s.request.Context != nil {
		from.object = *s.request.Context
	}
	return from
}

// sources have the last answer for each origin, which all its Secrets share.
type sources struct {
	data  Data
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[origin]*source
}

// source is the answer about an origin. Requests hold mu.
type source struct {
	used time.Time // guarded by that of sources

	mu     sync.Mutex
	uid    types.UID
	ref    v1alpha1.CredentialsReference
	denied bool // by the last request that was answered
	answer copied
}

// copied is an answer.
type copied struct {
	data  map[string][]byte
	err   error
	lost  bool      // err is a refusal: what was copied before has to go
	until time.Time // when it is requested again
}

// of returns the data of the Secret to which a binding refers. An agent that requests it for an object does not read the binding, which is nil then.
func (s *sources) of(ctx context.Context, key origin, binding *v1alpha1.CredentialsBinding) copied {
	from := s.source(key)
	from.mu.Lock()
	defer from.mu.Unlock()
	if binding != nil && (from.uid != binding.UID || from.ref != *binding.SecretRef) {
		from.uid, from.ref, from.denied, from.answer = binding.UID, *binding.SecretRef, false, copied{}
	}
	if now := s.clock.Now(); !now.Before(from.answer.until) {
		from.answer = from.request(ctx, s.data, key)
		from.answer.until = s.clock.Now().Add(from.pause())
	}
	return from.answer
}

func (s *sources) source(key origin) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	from, known := s.last[key]
	if !known {
		maps.DeleteFunc(s.last, func(_ origin, other *source) bool { return now.Sub(other.used) > unusedFor })
		from = &source{}
		s.last[key] = from
	}
	from.used = now
	return from
}

// request makes one request.
func (from *source) request(ctx context.Context, data Data, key origin) copied {
	var object *v1alpha1.ContextObject
	if key.object != (v1alpha1.ContextObject{}) {
		object = &key.object
	}
	got, err := data.Data(ctx, key.binding, from.uid, object)
	for _, reserved := range []string{v1alpha1.SecretToken, v1alpha1.SecretConfig} {
		if _, taken := got[reserved]; taken && err == nil {
			return copied{err: errors.New("the answer has the key " + reserved + ", which is kept for tokens"), lost: true}
		}
	}
	switch {
	case err == nil:
		from.denied = false
		return copied{data: got}
	case !answered(err):
		return copied{err: err}
	}
	confirmed := from.denied || !failures.Of(err).Denied()
	from.denied = true
	return copied{err: err, lost: confirmed}
}

func (from *source) pause() time.Duration {
	switch {
	case from.answer.err == nil || from.answer.lost:
		return copyEvery
	case from.denied && answered(from.answer.err):
		return confirmAfter
	}
	return unansweredFor
}

// answered reports whether an error is an answer about the object, and not a fault of the server or of the way to it.
func answered(err error) bool {
	switch failures.Of(err) {
	case failures.Unreachable, failures.Throttled, failures.ServerFailed:
		return false
	}
	return true
}
