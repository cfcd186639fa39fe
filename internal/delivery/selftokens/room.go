package selftokens

import "sync"

const (
	// unknownPlaces is how many requests are worked on at a time whose callers are not known yet.
	unknownPlaces = 64
	// knownPlaces is how many of pods that are known. These may wait long for the identity cluster, and keep no unknown ones out meanwhile.
	knownPlaces = 256
	// maxOfOne bounds those of one address, or of the pods of one namespace.
	maxOfOne = 16
)

// room has the places for requests that are worked on.
type room struct {
	of bound // whose places are counted: those of an address, or of a namespace

	mu   sync.Mutex
	free int
	held map[string]int
}

func newRoom(of bound, places int) *room { return &room{of: of, free: places, held: map[string]int{}} }

// begin takes a place, which done gives back, or returns the bound that is in the way. An address, or a namespace, that holds a third as many
// places as are free gets no more: the fuller the room, the fewer each has, and the last ones are for those without a place.
func (r *room) begin(whose string) (done func(), over bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch held := r.held[whose]; {
	case r.free == 0:
		return nil, ofAll
	case held >= maxOfOne || 3*held >= r.free:
		return nil, r.of
	}
	r.free--
	r.held[whose]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free++
		if r.held[whose]--; r.held[whose] == 0 {
			delete(r.held, whose)
		}
	}, ""
}
