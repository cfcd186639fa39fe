package tokenrequest

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxInFlight bounds the requests of the pods of one namespace that are worked on at a time. Each costs reads of the cluster, which all token
// requests share. It is not a bound of each account, as users who make accounts of a namespace can make many.
const maxInFlight = 32

// maxReviewsInFlight bounds the ContextReviews of one user that are worked on at a time. Each may check as many requests for tokens as there are
// references and clusters.
const maxReviewsInFlight = 4

// inFlight counts the requests that are worked on, of each namespace or user.
type inFlight struct {
	most int
	// what has the words for requests of one that is named.
	what string

	mu sync.Mutex
	of map[string]int
}

func newInFlight(most int, what string) *inFlight {
	return &inFlight{most: most, what: what, of: map[string]int{}}
}

// begin returns an error (429) if as many requests of one are worked on as may be. Otherwise the caller must call done at the end.
func (f *inFlight) begin(one string) (done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[one] >= f.most {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d %s are worked on, as many as may be at a time", f.most, fmt.Sprintf(f.what, one)), 1)
	}
	f.of[one]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.of[one]--; f.of[one] == 0 {
			delete(f.of, one)
		}
	}, nil
}
