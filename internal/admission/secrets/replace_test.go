package secrets_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/secrets"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// Tools such as Terraform and kubectl replace put a manifest in place of a Secret. If its requester does, the Secret keeps what was filled in.
func TestReplaceOfALabeledSecret(t *testing.T) {
	const inputs, renewal = "sha256", "2026-01-01T00:00:00Z"
	filled := func(s *corev1.Secret) {
		s.Data["chart"] = []byte("berth=7\nfile=" + "token")
		s.Annotations[v1alpha1.AnnotationInputs], s.Annotations[v1alpha1.AnnotationRenewTimestamp] = inputs, renewal
	}
	by := func(user authority.Subject) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			annotations := testkit.Need(tokensecret.FormatRequester(user))(t)
			for annotation, value := range annotations {
				s.Annotations[annotation] = value
			}
		}
	}
	manifest := func(s *corev1.Secret) {
		s.Data = nil
		delete(s.Labels, v1alpha1.LabelProvider)
	}
	copied := func(s *corev1.Secret) {
		delete(s.Annotations, v1alpha1.AnnotationName)
		s.Annotations[v1alpha1.AnnotationBinding] = "infra"
	}
	for name, c := range map[string]struct {
		secret, old *corev1.Secret
		user        authority.Subject
		keys        []string
		inputs      string
	}{
		"a manifest":                          {secret(manifest), secret(both(filled, by(jane))), jane, []string{"chart", "config", "token"}, inputs},
		"with data of its own":                {secret(both(manifest, func(s *corev1.Secret) { s.Data = map[string][]byte{"mine": nil} })), secret(both(filled, by(jane))), jane, []string{"chart", "config", "mine", "token"}, inputs},
		"its data alone is taken away":        {secret(both(by(jane), manifest)), secret(both(filled, by(jane))), jane, []string{"chart", "config", "token"}, inputs},
		"with other groups":                   {secret(manifest), secret(both(filled, by(jane))), promoted, []string{"chart", "config", "token"}, inputs},
		"a copy":                              {secret(both(copied, manifest)), secret(both(both(copied, by(jane)), annotated(v1alpha1.AnnotationCopiedKeys, "orchard/infra:mine"))), jane, []string{"chart", "config", "mine", "token"}, ""},
		"by another user":                     {secret(manifest), secret(both(filled, by(jane))), bob, nil, ""},
		"by another user of the name":         {secret(manifest), secret(both(filled, by(jane))), authority.Subject{Name: "jane", UID: "u-2"}, nil, ""},
		"another request":                     {secret(both(manifest, annotated(v1alpha1.AnnotationName, "cherry"))), secret(both(filled, by(jane))), jane, nil, ""},
		"one whose requester is not recorded": {secret(manifest), secret(filled), jane, nil, ""},
		"the token alone is taken out":        {secret(both(both(filled, by(jane)), func(s *corev1.Secret) { delete(s.Data, "token") })), secret(both(filled, by(jane))), jane, []string{"chart", "config", "mine"}, inputs},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := written(t, secrets.Request{Secret: c.secret, Old: c.old, User: c.user})
			if result.Denial != nil {
				t.Fatalf("refused: %s", result.Denial.Message)
			}
			after := admissiontest.Patched(t, c.secret, result.Patch)
			if diff := cmp.Diff(c.keys, slices.Sorted(maps.Keys(after.Data))); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			for _, key := range []string{"config", "token"} {
				if got, kept := after.Data[key]; kept && string(got) != string(c.old.Data[key]) {
					t.Errorf("%s is %q, and was %q", key, got, c.old.Data[key])
				}
			}
			if got := after.Annotations[v1alpha1.AnnotationInputs]; got != c.inputs {
				t.Errorf("inputs %q, want %q", got, c.inputs)
			}
			if before, _ := tokensecret.RequestedBy(c.old); c.inputs != "" && after.Annotations[v1alpha1.AnnotationRequester] != before.Name {
				t.Errorf("requested by %q", after.Annotations[v1alpha1.AnnotationRequester])
			}
		})
	}
}
