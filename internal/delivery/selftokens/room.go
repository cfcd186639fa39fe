package selftokens

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxReviews bounds the requests that are worked on at a time, of callers that are not known yet.
	maxReviews = 64
	// maxOfAddress bounds those from one address, of callers that are not known yet: a pod leaves room for others.
	maxOfAddress = 16
	// maxOfNamespace bounds those of the pods of one namespace, likewise.
	maxOfNamespace = 16
)

// room counts the requests that are worked on, of each namespace and address and, by the empty name, of all. No namespace has the name of an
// address: it would have a dot or a colon.
type room struct {
	mu sync.Mutex
	of map[string]int
}

func newRoom() *room { return &room{of: map[string]int{}} }

// begin returns an error (429) if as many requests are worked on as may be. Otherwise the caller must call done at the end.
func (r *room) begin(whose string, most int) (done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[whose] >= most {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d requests for tokens of pods are worked on, as many as may be at a time", most), 1)
	}
	r.of[whose]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.of[whose]--; r.of[whose] == 0 {
			delete(r.of, whose)
		}
	}, nil
}
