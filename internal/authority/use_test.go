package authority_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/authority/authoritytest"
	"github.com/credence-id/credence/test/testkit"
)

// The same table is run against the admission policies, and a real authorizer, by TestTheRuleOfUse of test/e2e.
func TestTheRuleOfUse(t *testing.T) {
	cases := authoritytest.Cases("orchard", "garden", "x-")
	for _, c := range cases {
		// Each case has all grants of its own, and no other: those of all accounts are for one object.
		answer, err := authority.Ask(t.Context(), authoritytest.RBAC(c.Grants), c.Question())
		if err != nil || answer.Allowed != c.Allowed {
			t.Errorf("%s: %v, %v; want %v", c.Name, answer.Allowed, err, c.Allowed)
		}
	}
	for _, kind := range kinds(t) {
		for _, allowed := range []bool{true, false} {
			if !slices.ContainsFunc(cases, func(c authoritytest.Case) bool { return c.Allowed == allowed && c.Object.Kind == kind }) {
				t.Errorf("no case of %s has the answer %v", kind.Resource, allowed)
			}
		}
	}
}

// kinds are those whose use is reviewed, as the source has them. Tokens are not used: the right to create them is the API's own.
func kinds(t *testing.T) []authority.Kind {
	t.Helper()
	source := testkit.Need(os.ReadFile("question.go"))(t)
	known := map[string]authority.Kind{
		"WorkloadIdentities": authority.WorkloadIdentities, "CredentialsBindings": authority.CredentialsBindings,
		"GMSACredentialSpecs": authority.GMSACredentialSpecs, "ServiceAccounts": authority.ServiceAccounts,
	}
	var all []authority.Kind
	for _, match := range regexp.MustCompile(`(?m)^\t(\w+) += Kind\{`).FindAllSubmatch(source, -1) {
		name := string(match[1])
		if name == "WorkloadIdentityTokens" {
			continue
		}
		kind, ok := known[name]
		if !ok {
			t.Errorf("%s is a kind without cases: give it some in authoritytest, and list it here", name)
		}
		all = append(all, kind)
	}
	if len(all) < len(known) {
		t.Errorf("question.go has the kinds %v, which are fewer than %d", all, len(known))
	}
	return all
}

// answers are the same for each question.
type answers struct {
	status authorizationv1.SubjectAccessReviewStatus
	err    error
}

func (a answers) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return a.status, a.err
}

func TestAnswers(t *testing.T) {
	type status = authorizationv1.SubjectAccessReviewStatus
	for name, test := range map[string]struct {
		status status
		want   authority.Answer
	}{
		"allowed":               {status{Allowed: true, Reason: "by a role"}, authority.Answer{Allowed: true}},
		"allowed, after errors": {status{Allowed: true, EvaluationError: "a role is missing"}, authority.Answer{Allowed: true}},
		"allowed and denied":    {status{Allowed: true, Denied: true, Reason: "never"}, authority.Answer{Detail: "never"}},
		"denied":                {status{Reason: "no role"}, authority.Answer{Detail: "no role"}},
		"undecided":             {status{EvaluationError: "a role is missing"}, authority.Answer{Detail: "a role is missing", Undecided: "a role is missing"}},
	} {
		got, err := authority.Ask(t.Context(), answers{status: test.status}, authority.Question{})
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	outage := errors.New("connection refused")
	q := authority.Use(authority.Subject{Name: "jane"}, authority.WorkloadIdentities, "orchard", "banana")
	if got, err := authority.Ask(t.Context(), answers{status{Allowed: true}, outage}, q); got.Allowed || !errors.Is(err, outage) || !strings.Contains(err.Error(), "review whether jane may use workloadidentities banana in namespace orchard") {
		t.Errorf("an outage: %v, %v", got, err)
	}
}
