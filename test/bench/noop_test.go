package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestWebhookThatDoesNothing(t *testing.T) {
	handler := admitAll()
	send := func(method, path, body string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader(body)))
		return recorder
	}
	ask := func(method, body string) *httptest.ResponseRecorder { return send(method, "/pods", body) }
	var answer admissionv1.AdmissionReview
	const review = `{"request":{"uid":"u1","object":{"metadata":{"name":"p"},"spec":{"containers":[]}}}}`
	got := ask(http.MethodPost, review)
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Response.UID != "u1" || !answer.Response.Allowed || answer.Response.Patch != nil {
		t.Errorf("answered %s", got.Body)
	}
	for _, body := range []string{`{}`, `{"request":{"uid":"u1"}}`, `{"request":{"uid":"u1","object":{"spec":7}}}`} {
		if got := ask(http.MethodPost, body); got.Code != http.StatusBadRequest {
			t.Errorf("%s is answered with %d: it has not been decoded", body, got.Code)
		}
	}
	ask(http.MethodPost, strings.Replace(review, "u1", "u2", 1))
	if seen := strings.TrimSpace(send(http.MethodGet, "/", "").Body.String()); seen != "2" {
		t.Errorf("has seen %s reviews, want 2", seen)
	}
	if first := ask(http.MethodGet, "").Body.String(); first != review {
		t.Errorf("the first review was %s", first)
	}
	if other := send(http.MethodGet, "/other", ""); other.Code != http.StatusNotFound {
		t.Errorf("a path that nothing was sent to is answered with %d", other.Code)
	}
}
