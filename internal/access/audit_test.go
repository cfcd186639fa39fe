package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

// auditLine is an event of level Metadata, of a request in the namespace shop.
func auditLine(user, impersonated string, code int, annotations ...string) string {
	as := ""
	if impersonated != "" {
		as = fmt.Sprintf(`"impersonatedUser":{"username":%q},`, impersonated)
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","user":{"username":%q,"groups":["devs"]},%s"objectRef":{"resource":"pods","namespace":"shop","name":"x"},"responseStatus":{"metadata":{},"code":%d},"annotations":{%s}}`+"\n",
		user, as, code, strings.Join(annotations, ","))
}

// account is what a policy adds to an event, and failed what the API server adds for policies that refuse.
func account(policy, value string) string {
	return fmt.Sprintf(`"credence-account-use-%s/account":%q`, policy, value)
}

func failed(index string, policies ...string) string {
	var list []string
	for _, policy := range policies {
		list = append(list, fmt.Sprintf(`{"message":"no","policy":"credence-account-use-%s","binding":"b","expressionIndex":%s,"validationActions":["Audit"]}`, policy, index))
	}
	return fmt.Sprintf(`"validation.policy.admission.k8s.io/validation_failure":%q`, "["+strings.Join(list, ",")+"]")
}

var podsOfCart = account("pods", "shop/cart") + "," + failed("0", "pods")

func TestAuditLogs(t *testing.T) {
	var log strings.Builder
	for _, line := range []string{
		auditLine("jane", "", 201, podsOfCart),
		auditLine("ci", "jane", 201, podsOfCart),
		auditLine("system:serviceaccount:argocd:sync", "", 200, account("pods", "shop/cart"), account("templates", "shop/batch"), failed("0", "pods", "templates")),
		auditLine("mallory", "", 403, podsOfCart),
		auditLine("system:anonymous", "", 201, podsOfCart),
		auditLine("jane", "", 201, account("revisions", "shop/*"), failed(`"0"`, "revisions")),
		auditLine("jane", "", 201, account("pods", "shop/x, shop/y"), failed("0", "pods", "other")),
		// Values that a user wrote into an annotation of a Secret.
		auditLine("jane", "", 201, account("secrets", "shop/default, credence-system/credence-agent"), failed("0", "secrets")),
		auditLine("jane", "", 201, account("secrets", "shop/default, shop/*"), failed("0", "secrets")),
		auditLine("jane", "", 200, account("pods", "shop/with-the-right")),
		auditLine("jane", "", 200, account("pods", "shop/with-a-foreign-secret"), failed("1", "pods")),
		auditLine("jane", "", 200, account("pods", "shop/with-the-right"), failed("0", "tokens")),
		auditLine("jane", "", 200, account("pods", "shop/x"), `"validation.policy.admission.k8s.io/validation_failure":"x"`),
		auditLine("jane", "", 200),
		"\n", "not JSON\n", "{}\n",
		auditLine("jane", "", 201, account("pods", "shop/Cart"), failed("0", "pods")),
		auditLine("", "", 201, podsOfCart),
		`{"apiVersion":"v1","annotations":{` + podsOfCart + "}}\n",
		"{\"" + strings.Repeat("x", maxLine) + "\n",
		strings.TrimSpace(auditLine("jane", "", 201, podsOfCart)),
	} {
		log.WriteString(line)
	}
	var missing Missing
	testkit.Must(t, missing.Read(strings.NewReader(log.String())))
	var got []string
	for _, s := range missing.Suggestions() {
		text := fmt.Sprintf("%s in %d by %s:", s.Account, s.Events, s.Binding.RoleRef.Name)
		for _, subject := range s.Binding.Subjects {
			text += " " + subject.Namespace + "/" + subject.Name
		}
		got = append(got, text)
	}
	want := []string{
		"shop/batch in 1 by credence:serviceaccounts:user:batch: argocd/sync",
		"shop/x in 1 by credence:serviceaccounts:user:x: /jane",
		"shop/y in 1 by credence:serviceaccounts:user:y: /jane",
		"shop/cart in 4 by credence:serviceaccounts:user:cart: argocd/sync /jane",
		"shop/* in 1 by credence:serviceaccounts:user: /jane",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if missing.Events != 17 || missing.Refused != 1 || missing.Bad != 9 || len(missing.Named) != maxBad || !missing.LeftOut["system:anonymous"] {
		t.Errorf("%d events, %d refused, %d bad, left out %v; named:\n%s", missing.Events, missing.Refused, missing.Bad, missing.LeftOut, strings.Join(missing.Named, "\n"))
	}
}

// Rights of one log stay when those of another are applied.
func TestSuggestionsOfOtherUsersHaveOtherNames(t *testing.T) {
	names := map[string]bool{}
	for _, users := range [][]string{{"jane"}, {"joe"}, {"jane", "joe"}, {"joe", "jane"}} {
		var missing Missing
		for _, user := range users {
			testkit.Must(t, missing.Read(strings.NewReader(auditLine(user, "", 201, podsOfCart))))
		}
		names[missing.Suggestions()[0].Binding.Name] = true
	}
	if len(names) != 3 || names[UserRole+":cart"] {
		t.Errorf("names of bindings: %v", names)
	}
}

func FuzzAudit(f *testing.F) {
	f.Add(auditLine("jane", "joe", 201, podsOfCart))
	f.Add(auditLine("system:serviceaccount:a:b", "", 0, account("x", "a/*, b/c"), failed("0", "x")))
	f.Fuzz(func(t *testing.T, log string) {
		var missing Missing
		testkit.Must(t, missing.Read(strings.NewReader(log)))
		for _, s := range missing.Suggestions() {
			if err := s.Account.Check(); err != nil || len(s.Binding.Subjects) == 0 {
				t.Errorf("suggested %v: %v", s, err)
			}
		}
	})
}
