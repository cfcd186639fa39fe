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
	ask := func(method, body string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(method, "/pods", strings.NewReader(body)))
		return recorder
	}
	var answer admissionv1.AdmissionReview
	got := ask(http.MethodPost, `{"request":{"uid":"u1","object":{"metadata":{"name":"p"},"spec":{"containers":[]}}}}`)
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Response.UID != "u1" || !answer.Response.Allowed || answer.Response.Patch != nil {
		t.Errorf("answered %s", got.Body)
	}
	for _, body := range []string{`{}`, `{"request":{"uid":"u1"}}`, `{"request":{"uid":"u1","object":{"spec":7}}}`} {
		if got := ask(http.MethodPost, body); got.Code != http.StatusBadRequest {
			t.Errorf("%s is answered with %d: it has not been decoded", body, got.Code)
		}
	}
	if seen := strings.TrimSpace(ask(http.MethodGet, "").Body.String()); seen != "1" {
		t.Errorf("has seen %s reviews, want 1", seen)
	}
}
