package selftokens

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxReviews bounds the requests that are worked on at a time, of callers that are not known yet.
	maxReviews = 64
	// maxOfNamespace bounds those of the pods of one namespace: it leaves room for others.
	maxOfNamespace = 16
)

// room counts the requests that are worked on, of each namespace and, by the empty name, of all.
type room struct {
	mu sync.Mutex
	of map[string]int
}

func newRoom() *room { return &room{of: map[string]int{}} }

// begin returns an error (429) if as many requests are worked on as may be. Otherwise the caller must call done at the end.
func (r *room) begin(namespace string, most int) (done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[namespace] >= most {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d requests for tokens of pods are worked on, as many as may be at a time", most), 1)
	}
	r.of[namespace]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.of[namespace]--; r.of[namespace] == 0 {
			delete(r.of, namespace)
		}
	}, nil
}
