package discovery

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// DefaultMaxAge is how long relying parties may cache a document.
const DefaultMaxAge = time.Hour

// Settings are the needs of a Handler.
type Settings struct {
	Issuer   identity.Issuer  // the issuer of the served documents, at the paths of its URL
	MaxAge   time.Duration    // the longest max-age, in whole seconds; zero stands for DefaultMaxAge
	Recorder *Recorder        // nil records nothing
	Now      func() time.Time // nil stands for time.Now
}

// Handler serves the documents of one issuer. Requests read one snapshot through an atomic pointer, take no lock and
// render nothing: relying parties that refetch on every unknown kid let unknown clients cause their requests.
type Handler struct {
	issuer            identity.Issuer
	configurationPath string
	jwksPath          string
	freshness         freshness
	recorder          *Recorder
	current           atomic.Pointer[snapshot]
	forbidden         atomic.Pointer[[]identity.KeyID]
}

// snapshot is one state of the served documents, replaced whole.
type snapshot struct {
	documents     Documents
	configuration representation
	jwks          representation
}

// representation is a document with its ready-made header fields.
type representation struct {
	body          []byte
	contentType   []string
	contentLength []string
	etag          []string
}

// NewHandler returns a handler that answers 503 until documents are published.
func NewHandler(settings Settings) *Handler {
	maxAge := cmp.Or(settings.MaxAge, DefaultMaxAge)
	return &Handler{
		issuer:            settings.Issuer,
		configurationPath: settings.Issuer.Path() + "/.well-known/openid-configuration",
		jwksPath:          settings.Issuer.Path() + "/jwks",
		freshness:         newFreshness(maxAge, settings.Now),
		recorder:          settings.Recorder,
	}
}

// Publish serves documents from now on. Those of another issuer are an error, and change nothing.
func (h *Handler) Publish(documents Documents) error {
	if documents.issuer != h.issuer {
		return fmt.Errorf("documents are of issuer %q, this server is for %q", documents.issuer, h.issuer)
	}
	if now := h.current.Load(); now == nil || !now.documents.Equal(documents) {
		h.current.Store(&snapshot{
			documents:     documents,
			configuration: newRepresentation(documents.configuration, "application/json"),
			jwks:          newRepresentation(documents.jwks, "application/jwk-set+json"),
		})
		h.recorder.changed()
	}
	h.recorder.accepted()
	return nil
}

// Forbid names all keys that are known to be revoked: Load refuses documents with one of them.
func (h *Handler) Forbid(revoked []identity.KeyID) { h.forbidden.Store(&revoked) }

// Load parses documents from outside and serves them from now on. On an error, which is that of Parse or a *Refusal of a
// revoked key, the documents served stay what they are.
func (h *Handler) Load(configuration, jwks []byte) (Documents, error) {
	documents, err := Parse(h.issuer, configuration, jwks)
	if forbidden := h.forbidden.Load(); err == nil && forbidden != nil {
		for i, key := range documents.keys {
			if slices.Contains(*forbidden, key.ID) {
				err = refuse(ReasonRevoked, jwksName, fmt.Sprintf("keys[%d].kid", i), "%q was revoked before: older documents were put back", key.ID)
			}
		}
	}
	if err != nil {
		h.recorder.refused(ReasonOf(err))
		return Documents{}, err
	}
	return documents, h.Publish(documents)
}

// Expect sets when the documents change next, so that they are not cached for longer; zero if that is not known. Once it is
// past they are cached for a minute at most.
func (h *Handler) Expect(nextChange time.Time) { h.freshness.nextChange.Store(&nextChange) }

// Unreadable records that the source has no documents. The served documents stay.
func (h *Handler) Unreadable() { h.recorder.refused(ReasonUnreadable) }

// Loaded reports whether there are documents to serve. Once true, it stays true.
func (h *Handler) Loaded() bool { return h.current.Load() != nil }

func newRepresentation(body []byte, contentType string) representation {
	return representation{
		body:          body,
		contentType:   []string{contentType},
		contentLength: []string{strconv.Itoa(len(body))},
		etag:          []string{etag(body)},
	}
}

// Header values that are the same in every answer; net/http reads them and never writes to them.
var (
	strictTransport = []string{"max-age=31536000; includeSubDomains"}
	nosniff         = []string{"nosniff"}
	anyOrigin       = []string{"*"}
	allowed         = []string{"GET, HEAD"}
	retryAfter      = []string{"5"}
	noStore         = []string{"no-store"}
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Strict-Transport-Security"] = strictTransport
	header["X-Content-Type-Options"] = nosniff

	document := h.document(r)
	if document == otherDocument {
		h.fail(w, r, document, notFound)
		return
	}
	header["Access-Control-Allow-Origin"] = anyOrigin
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header["Allow"] = allowed
		h.fail(w, r, document, methodNotAllowed)
		return
	}
	current := h.current.Load()
	if current == nil {
		header["Retry-After"] = retryAfter
		h.fail(w, r, document, unavailable)
		return
	}
	if document == configurationServed {
		h.serve(w, r, document, &current.configuration)
	} else {
		h.serve(w, r, document, &current.jwks)
	}
}

// document returns the requested document. A slash that is written %2F is not a separator (RFC 3986, section 2.2), other
// escapes stand for their characters.
func (h *Handler) document(r *http.Request) servedDocument {
	if raw := r.URL.RawPath; raw != "" && (strings.Contains(raw, "%2F") || strings.Contains(raw, "%2f")) {
		return otherDocument
	}
	switch r.URL.Path {
	case h.jwksPath:
		return jwksServed
	case h.configurationPath:
		return configurationServed
	}
	return otherDocument
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, document servedDocument, representation *representation) {
	header := w.Header()
	header["Cache-Control"] = h.freshness.cacheControl()
	header["Etag"] = representation.etag
	if fields := r.Header["If-None-Match"]; len(fields) > 0 && !noneMatch(fields, representation.etag[0]) {
		h.recorder.served(document, answerNotModified)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Type"] = representation.contentType
	header["Content-Length"] = representation.contentLength
	h.recorder.served(document, answerOK)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(representation.body)
	}
}
