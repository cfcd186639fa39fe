package discovery

import (
	"fmt"
	"net/http"
)

// failure is an answer without a document; its body is for people.
type failure struct {
	code           int
	answer         answer
	representation representation
}

var (
	notFound         = newFailure(http.StatusNotFound, answerNotFound, "there is no document at this path")
	methodNotAllowed = newFailure(http.StatusMethodNotAllowed, answerMethodNotAllowed, "only GET and HEAD are allowed")
	unavailable      = newFailure(http.StatusServiceUnavailable, answerUnavailable, "no documents are loaded yet, try again")
)

func newFailure(code int, answer answer, message string) *failure {
	body := fmt.Sprintf("{\"code\":%d,\"message\":%q}\n", code, message)
	return &failure{code: code, answer: answer, representation: newRepresentation([]byte(body), "application/json")}
}

// fail answers without a document. No cache may keep it: the next answer may have one.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, document servedDocument, failure *failure) {
	header := w.Header()
	header["Cache-Control"] = noStore
	header["Content-Type"] = failure.representation.contentType
	header["Content-Length"] = failure.representation.contentLength
	h.recorder.served(document, failure.answer)
	w.WriteHeader(failure.code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(failure.representation.body)
	}
}
