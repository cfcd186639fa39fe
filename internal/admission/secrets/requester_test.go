package secrets_test

import (
	"slices"
	"strings"
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

var (
	jane = authority.Subject{Name: "jane", UID: "u-jane", Groups: []string{"fruit", "system:authenticated"}, Extra: map[string][]string{"example.com/scopes": {"a", "b"}, "x": {""}}}
	bob  = authority.Subject{Name: "bob"}
	// promoted is jane with other groups.
	promoted = authority.Subject{Name: "jane", UID: "u-jane", Groups: []string{"fruit", "vegetables"}}
)

// The user who has a Secret filled is the one who labelled it, until another takes it over.
func TestRequester(t *testing.T) {
	of := func(user authority.Subject) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			annotations := testkit.Need(tokensecret.FormatRequester(user))(t)
			for _, annotation := range tokensecret.RequesterAnnotations() {
				delete(s.Annotations, annotation)
			}
			for annotation, value := range annotations {
				s.Annotations[annotation] = value
			}
		}
	}
	unlabelled := func(s *corev1.Secret) { s.Labels = nil }
	for name, test := range map[string]struct {
		secret, old *corev1.Secret
		by, want    authority.Subject
	}{
		"created":                             {secret(nil), nil, jane, jane},
		"created with another user's name":    {secret(of(jane)), nil, bob, bob},
		"labelled":                            {secret(nil), secret(unlabelled), jane, jane},
		"labelled, prepared for another user": {secret(of(jane)), secret(both(unlabelled, of(jane))), bob, bob},
		"another identity":                    {secret(both(of(jane), annotated(v1alpha1.AnnotationName, "cherry"))), secret(of(jane)), bob, bob},
		"something else":                      {secret(both(of(jane), annotated("note", "x"))), secret(of(jane)), bob, jane},
		"taken over":                          {secret(both(of(jane), annotated(v1alpha1.AnnotationRequester, "me"))), secret(of(jane)), bob, bob},
		"taken over for another user":         {secret(of(jane)), secret(of(authority.Subject{Name: "eve"})), bob, bob},
		"replaced without":                    {secret(nil), secret(of(jane)), bob, jane},
		"other groups":                        {secret(both(of(jane), annotated(v1alpha1.AnnotationRequesterGroups, "system:masters"))), secret(of(jane)), jane, jane},
		"taken over by the same name":         {secret(both(of(jane), annotated(v1alpha1.AnnotationRequester, "me"))), secret(of(jane)), promoted, promoted},
		"the same name, something else":       {secret(both(of(jane), annotated("note", "x"))), secret(of(jane)), promoted, jane},
		"one of before, something else":       {secret(annotated("note", "x")), secret(nil), bob, authority.Subject{}},
		"one of before, taken over":           {secret(annotated(v1alpha1.AnnotationRequester, "me")), secret(nil), bob, bob},
		"the agent":                           {secret(of(jane)), secret(of(jane)), authority.Subject{Name: agent}, jane},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := written(t, secrets.Request{Secret: test.secret, Old: test.old, User: test.by})
			if result.Denial != nil {
				t.Fatalf("refused: %s", result.Denial.Message)
			}
			got, _ := tokensecret.RequestedBy(admissiontest.Patched(t, test.secret, result.Patch))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the user that is kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequesterThatCannotBeKept(t *testing.T) {
	for name, test := range map[string]struct {
		user    authority.Subject
		message string
	}{
		"groups without end":    {authority.Subject{Name: "jane", Groups: slices.Repeat([]string{strings.Repeat("g", 100)}, 700)}, "700 groups"},
		"a group of two lines":  {authority.Subject{Name: "jane", Groups: []string{"a\nsystem:masters"}}, "line break"},
		"a value of two lines":  {authority.Subject{Name: "jane", Extra: map[string][]string{"k": {"a\nb=c"}}}, "line break"},
		"a value with a tab":    {authority.Subject{Name: "jane", Extra: map[string][]string{"k": {"a\tb"}}}, "a tab"},
		"a key with an = in it": {authority.Subject{Name: "jane", Extra: map[string][]string{"k=l": {"a"}}}, "= in its name"},
	} {
		if _, result := written(t, secrets.Request{Secret: secret(nil), User: test.user}); result.Denial == nil || !strings.Contains(result.Denial.Message, test.message) {
			t.Errorf("%s: %+v, want %q", name, result.Denial, test.message)
		}
	}
}
