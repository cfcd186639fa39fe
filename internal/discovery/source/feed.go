package source

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/credence-id/credence/internal/discovery"
)

// Publisher is what a source gives documents to.
type Publisher interface {
	// Load checks documents and serves them from now on. On an error what is served stays.
	Load(configuration, jwks []byte) (discovery.Documents, error)
	// Unreadable is told that the source has no documents to give. What is served stays.
	Unreadable()
}

// feed passes on what is new: looking at the same documents or failing for the same reason again is no news.
type feed struct {
	publisher Publisher
	log       *slog.Logger

	mu                  sync.Mutex
	configuration, jwks []byte
	offered, accepted   bool
	failure             string
}

// offer publishes documents and says whether they are served now.
func (f *feed) offer(configuration, jwks []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.offered && bytes.Equal(f.configuration, configuration) && bytes.Equal(f.jwks, jwks) {
		return f.accepted
	}
	f.failure = ""
	f.configuration, f.jwks, f.offered = configuration, jwks, true
	documents, err := f.publisher.Load(configuration, jwks)
	if f.accepted = err == nil; !f.accepted {
		f.log.Error("documents refused, the last good ones stay served", "reason", discovery.ReasonOf(err), "error", err)
		return false
	}
	f.log.Info("documents loaded", "keys", documents.KeyIDs(), "jwksETag", documents.JWKSETag())
	return true
}

// fail tells that the source cannot be read; cause is what tells one failure from the next.
func (f *feed) fail(cause string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == cause {
		return
	}
	f.failure, f.offered = cause, false
	f.publisher.Unreadable()
	f.log.Error("documents cannot be read, the last good ones stay served", "error", err)
}

// failing says whether the last news was a failure.
func (f *feed) failing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure != ""
}
