package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/stack"
)

const (
	// maxBody is two objects of the size that the API server takes (3 MiB), the new and the old, and the rest of a review.
	maxBody = 7 << 20
	// maxObjects bounds what a review costs once it is decoded: an empty container takes 2 bytes of it, and a thousand of memory.
	// Of what the API server stores, 1.5 MiB, nothing real comes near.
	maxObjects = 50_000
	// maxKept is the size up to which a buffer is used again.
	maxKept = 256 << 10

	defaultTimeout = 10 * time.Second // of webhook configurations
	maxTimeout     = 30 * time.Second // the longest that a configuration may have
)

// decider answers a request. An error is something that could not be found out.
type decider[T any] func(ctx context.Context, r *request[T]) (answer, error)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// handler is the HTTP side of a decider.
func handler[T any](needs Needs, name handlerName, decide decider[T]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stack.Grow()
		began := needs.Now()
		outcome := serve(needs, name, decide, w, r)
		needs.Recorder.served(name, outcome, needs.Now().Sub(began))
	})
}

func serve[T any](needs Needs, name handlerName, decide decider[T], w http.ResponseWriter, r *http.Request) outcome {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "reviews are sent by POST", http.StatusMethodNotAllowed)
		return malformed
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "reviews are application/json", http.StatusUnsupportedMediaType)
		return malformed
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout(r.URL.Query().Get("timeout")))
	defer cancel()
	body := buffers.Get().(*bytes.Buffer)
	defer recycle(body)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, "the review is larger than the API server can store", http.StatusRequestEntityTooLarge)
		} else {
			http.Error(w, "read the review: "+err.Error(), http.StatusBadRequest)
		}
		return malformed
	}
	if n := objects(body.Bytes()); n > maxObjects {
		http.Error(w, "the review holds more JSON objects than anything that the API server can store", http.StatusRequestEntityTooLarge)
		return malformed
	}
	request, err := decode[T](body.Bytes())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return malformed
	}
	answer, err := decide(ctx, request)
	if err != nil {
		answer = failed(request.Resource.Resource+" "+request.Namespace+"/"+cmp.Or(request.Name, "(new)"), err)
		needs.Log.ErrorContext(ctx, "no decision", "handler", name.String(), "namespace", request.Namespace, "name", request.Name, "uid", request.UID, "error", err)
	}
	out, err := answer.encode(request.version, request.UID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return failure
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out) // an API server that went away has refused the request itself
	if answer.code != 0 && answer.code < http.StatusInternalServerError {
		needs.Log.InfoContext(ctx, "refused", "handler", name.String(), "namespace", request.Namespace, "name", request.Name, "uid", request.UID, "code", answer.code)
	}
	return answer.outcome()
}

// objects counts the JSON objects of a body, in so far as it is JSON.
func objects(body []byte) int {
	count, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case '{':
			if !quoted {
				count++
			}
		}
	}
	return count
}

func recycle(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxKept {
		buffer.Reset()
		buffers.Put(buffer)
	}
}

// timeout is how long the API server waits, less the time for the answer: it should get the reason of a missing decision.
func timeout(parameter string) time.Duration {
	asked, err := time.ParseDuration(parameter)
	if err != nil || asked <= 0 {
		asked = defaultTimeout
	}
	asked = min(asked, maxTimeout)
	return asked - min(asked/10, 500*time.Millisecond)
}
