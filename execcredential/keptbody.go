package execcredential

import (
	"io"
	"sync"
)

// keptBody is a body that can be read only once, of a request that may not be sent after all: net/http closes the bodies of requests that
// it has no connection for. This one stays open as long as no byte was read from it, until finish.
type keptBody struct {
	body io.ReadCloser

	mu       sync.Mutex
	read     bool
	finished bool
	closed   bool // as far as who sends it knows
}

// Read implements io.Reader.
func (k *keptBody) Read(p []byte) (int, error) {
	k.mu.Lock()
	k.read = true
	k.mu.Unlock()
	return k.body.Read(p)
}

// Close implements io.Closer.
func (k *keptBody) Close() error {
	k.mu.Lock()
	k.closed = true
	now := k.read || k.finished
	k.mu.Unlock()
	if now {
		return k.body.Close()
	}
	return nil
}

// whole reports whether the body can be sent as if for the first time.
func (k *keptBody) whole() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.read && !k.finished
}

// again is for who sends a whole body again.
func (k *keptBody) again() io.ReadCloser {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = false
	return k
}

// finish closes the body if it was to be closed, and keeps it no longer.
func (k *keptBody) finish() {
	k.mu.Lock()
	now := k.closed && !k.read && !k.finished
	k.finished = true
	k.mu.Unlock()
	if now {
		_ = k.body.Close()
	}
}
