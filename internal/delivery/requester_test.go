package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
)

// The user who labelled a Secret is reviewed at each renewal, with all that the API server knew of them.
func TestTheRequesterIsReviewedAtEachRenewal(t *testing.T) {
	alice := authority.Subject{Name: "alice;id", UID: "u-alice", Groups: []string{"fruit", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
	w := newWorld(t, labelled("ns", "s", "banana"), labelled("ns", "of-before", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.edit("ns/s", func(s *corev1.Secret) {
		annotations, err := tokensecret.FormatRequester(alice)
		if err != nil {
			t.Fatal(err)
		}
		for annotation, value := range annotations {
			s.Annotations[annotation] = value
		}
	})
	w.look("ns/s")
	w.look("ns/of-before")
	if diff := cmp.Diff([]authority.Subject{alice}, w.reviewed); diff != "" || len(w.tokens) != 2 {
		t.Errorf("%d tokens; reviewed (-want +got):\n%s", len(w.tokens), diff)
	}

	w.denied[alice.Name] = true
	w.pass(45 * time.Minute)
	if wait := w.look("ns/s"); len(w.tokens) != 2 || wait <= 0 || secrets.Stored(w.secret("ns/s")) == nil {
		t.Errorf("%d tokens after the right was taken away, tried again after %s, want the old one kept", len(w.tokens), wait)
	}
	if event := w.event(); !strings.Contains(event, "UseDenied alice;id, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity ns/banana") || !strings.Contains(event, "--user='alice;id'; or a user") || !strings.Contains(event, v1alpha1.AnnotationRequester+"=me") {
		t.Errorf("the Event is %q", event)
	}
	if event := w.event(); event != "" {
		t.Errorf("one more Event: %q", event)
	}
	// With other groups it is tried at once, and not again.
	before := len(w.reviewed)
	w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequesterGroups] = "fruit\nvegetables" })
	w.look("ns/s")
	w.look("ns/s")
	if n := len(w.reviewed) - before; n != 1 {
		t.Errorf("reviewed %d times with other groups, want once", n)
	}
	// Another user takes it over: at once.
	w.edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequester] = "bob" })
	w.look("ns/s")
	w.look("ns/of-before")
	if len(w.tokens) != 4 {
		t.Errorf("%d tokens, want one for each of both", len(w.tokens))
	}
}
