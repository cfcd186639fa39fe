package source

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

// Publisher is what a source gives documents to.
type Publisher interface {
	// Load checks documents and serves them from now on. On an error what is served stays.
	Load(configuration, jwks []byte) (discovery.Documents, error)
	// Expect sets when the documents change next: zero if that is not known, a past time if it may be at any moment.
	Expect(nextChange time.Time)
	// Forbid names all keys that are known to be revoked; Load refuses documents with one of them.
	Forbid(revoked []identity.KeyID)
	// Unreadable records that the source has no documents. The served ones stay.
	Unreadable()
}

// anyMoment is the next change of documents of which newer ones may exist.
func anyMoment() time.Time { return time.Unix(0, 0) }

// found is what a source has.
type found struct {
	configuration, jwks []byte
	// nextChange is the text of discovery.NextChangeKey, or "".
	nextChange string
	// revoked is the text of discovery.RevokedKey, or "".
	revoked string
}

// feed passes on changes only: the same documents, or the same failure again, are skipped.
type feed struct {
	publisher Publisher
	log       *slog.Logger

	mu                  sync.Mutex
	configuration, jwks []byte
	offered, accepted   bool
	failure             string
	// revoked are all keys that were ever listed as revoked: older documents that are put back do not bring one back.
	revoked []discovery.Revoked
}

// offer publishes documents and reports whether they are served now.
func (f *feed) offer(what found) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(what.revoked)
	accepted := f.load(what)
	f.publisher.Expect(f.expected(what.nextChange, accepted))
	return accepted
}

// recall adds to the keys that are known to be revoked.
func (f *feed) recall(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(text)
}

// remember adds to the revoked keys. A list that cannot be read removes none.
func (f *feed) remember(text string) {
	list, err := discovery.ParseRevoked(text)
	if err != nil {
		f.log.Warn("the list of revoked keys cannot be read, the last one counts", "error", err)
		return
	}
	known := len(f.revoked)
	for _, gone := range list {
		if !slices.ContainsFunc(f.revoked, func(r discovery.Revoked) bool { return r.ID == gone.ID }) {
			f.revoked = append(f.revoked, gone)
		}
	}
	if len(f.revoked) == known {
		return
	}
	f.offered = false // the served documents may have a revoked key
	var ids []identity.KeyID
	for _, gone := range f.revoked {
		ids = append(ids, gone.ID)
	}
	f.publisher.Forbid(ids)
}

// remembered is the text of all keys that are known to be revoked.
func (f *feed) remembered() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return discovery.EncodeRevoked(f.revoked)
}

func (f *feed) load(what found) bool {
	if f.offered && bytes.Equal(f.configuration, what.configuration) && bytes.Equal(f.jwks, what.jwks) {
		return f.accepted
	}
	f.failure = ""
	f.configuration, f.jwks, f.offered = what.configuration, what.jwks, true
	documents, err := f.publisher.Load(what.configuration, what.jwks)
	if f.accepted = err == nil; !f.accepted {
		f.log.Error("documents refused, the last good ones stay served", "reason", discovery.ReasonOf(err), "error", err)
		return false
	}
	f.log.Info("documents loaded", "keys", documents.KeyIDs(), "jwksETag", documents.JWKSETag())
	return true
}

// expected is when what is served changes next. While newer documents are refused, that may be at any moment.
func (f *feed) expected(text string, accepted bool) time.Time {
	if !accepted {
		return anyMoment()
	}
	if text == "" {
		return time.Time{}
	}
	next, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.log.Warn("the time of the next change cannot be read, relying parties may keep the documents for a minute only", "error", err)
		return anyMoment()
	}
	return next
}

// fail records that the source cannot be read; cause identifies the failure.
func (f *feed) fail(cause string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == cause {
		return
	}
	f.failure, f.offered = cause, false
	f.publisher.Unreadable()
	f.publisher.Expect(anyMoment())
	f.log.Error("documents cannot be read, the last good ones stay served", "error", err)
}

// failing reports whether the last change was a failure.
func (f *feed) failing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure != ""
}
