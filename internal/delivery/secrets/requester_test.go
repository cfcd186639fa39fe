package secrets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// The user who labelled a Secret is reviewed at each renewal, with all that the API server knew of them.
func TestRequesterIsReviewedAtEachRenewal(t *testing.T) {
	alice := authority.Subject{Name: "alice;id", UID: "u-alice", Groups: []string{"fruit", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"), deliverytest.LabeledSecret("ns", "of-before", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Edit("ns/s", func(s *corev1.Secret) {
		annotations := testkit.Need(tokensecret.FormatRequester(alice))(t)
		for annotation, value := range annotations {
			s.Annotations[annotation] = value
		}
	})
	w.Look("ns/s")
	w.Look("ns/of-before")
	if diff := cmp.Diff([]authority.Subject{alice}, w.Reviewed); diff != "" || len(w.Tokens) != 2 {
		t.Errorf("%d tokens; reviewed (-want +got):\n%s", len(w.Tokens), diff)
	}

	w.Denied[alice.Name] = true
	w.Pass(45 * time.Minute)
	if wait := w.Look("ns/s"); len(w.Tokens) != 2 || wait <= 0 || secrets.Stored(w.Secret("ns/s")) == nil {
		t.Errorf("%d tokens after the right was taken away, tried again after %s, want the old one kept", len(w.Tokens), wait)
	}
	if event := w.Event(); !strings.Contains(event, "UseDenied alice;id, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity ns/banana") || !strings.Contains(event, "--user='alice;id'; or a user") || !strings.Contains(event, v1alpha1.AnnotationRequester+"=me") {
		t.Errorf("the Event is %q", event)
	}
	if event := w.Event(); event != "" {
		t.Errorf("one more Event: %q", event)
	}
	// With other groups it is tried at once, and not again.
	before := len(w.Reviewed)
	w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequesterGroups] = "fruit\nvegetables" })
	w.Look("ns/s")
	w.Look("ns/s")
	if n := len(w.Reviewed) - before; n != 1 {
		t.Errorf("reviewed %d times with other groups, want once", n)
	}
	// Another user takes it over: at once.
	w.Edit("ns/s", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequester] = "bob" })
	w.Look("ns/s")
	w.Look("ns/of-before")
	if len(w.Tokens) != 4 {
		t.Errorf("%d tokens, want one for each of both", len(w.Tokens))
	}
}
