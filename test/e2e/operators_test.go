package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The doctor names an operator that may use every account while no policy checks the authors of its kinds, and the users who can become it.
func TestDoctorOfOperators(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	tenant, group := namespace+"-tenant", namespace+".example.com"
	operator := namespace + "/operator"
	doctor := func(unless bool, want string) {
		t.Helper()
		eventually(t, func() error {
			stdout, stderr, _ := shared.command(t, "", "credence", "doctor")
			if strings.Contains(stdout, want) == unless {
				return fmt.Errorf("prints %q: %v\n%s%s", want, !unless, stdout, stderr)
			}
			return nil
		})
	}
	shared.must(t, "", "kubectl", "create", "serviceaccount", "operator", "-n", namespace)
	controllers := "e2e-controllers-" + namespace
	shared.must(t, "", "kubectl", "create", "clusterrolebinding", controllers, "--clusterrole=credence:controllers", "--serviceaccount="+namespace+":operator")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "clusterrolebinding", controllers) })
	shared.bind(t, namespace, "edit", user(tenant))
	unchecked := operator + " may use every service account, and no policy checks the authors of its kinds"
	doctor(false, unchecked)
	doctor(false, "users of namespace "+namespace+" can become "+operator)
	doctor(false, tenant+" (")
	// A policy as credence access policy prints it, of a kind that the operator follows.
	policy := "credence-account-use-widgets." + group
	shared.must(t, fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[
		{"apiGroups":[%q],"apiVersions":["v1"],"operations":["CREATE"],"resources":["widgets"]}]},"validations":[{"expression":"true"}]}}`, policy, group), "kubectl", "create", "-f", "-")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "validatingadmissionpolicy", policy) })
	role := "e2e-" + namespace
	shared.must(t, "", "kubectl", "create", "clusterrole", role, "--verb=watch", "--resource=pods")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "clusterrole", role) })
	shared.must(t, "", "kubectl", "patch", "clusterrole", role, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":"/rules/0","value":{"apiGroups":[%q],"resources":["widgets"],"verbs":["watch"]}}]`, group))
	shared.must(t, "", "kubectl", "create", "clusterrolebinding", role, "--clusterrole="+role, "--serviceaccount="+namespace+":operator")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "clusterrolebinding", role) })
	doctor(true, unchecked)
}

// An operator on the list makes pods of all accounts, as Kubernetes' own controllers do; off the list it needs the right as users do.
func TestOperatorOnAndOffTheList(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	operator := "system:serviceaccount:" + a.namespace + ":operator"
	shared.must(t, "", "kubectl", "create", "serviceaccount", "operator", "-n", a.namespace)
	shared.bind(t, a.namespace, "edit", user(operator))
	answered := func(allowed bool) {
		t.Helper()
		eventually(t, func() error {
			code, answer := a.sendAs(t, a.as(t, operator, "system:serviceaccounts"), "POST", "pods", jsonBody, podWith("cart"))
			if allowed != (code == http.StatusCreated) || !allowed && !strings.Contains(answer, "user "+operator+" may not use service account cart") {
				return fmt.Errorf("on the list: %v: %d %s", allowed, code, answer)
			}
			return nil
		})
	}
	answered(false)
	list := "e2e-controllers-" + a.namespace
	shared.must(t, "", "kubectl", "create", "clusterrolebinding", list, "--clusterrole=credence:controllers", "--serviceaccount="+a.namespace+":operator")
	t.Cleanup(func() { shared.command(t, "", "kubectl", "delete", "clusterrolebinding", list, "--ignore-not-found") })
	answered(true)
	shared.must(t, "", "kubectl", "delete", "clusterrolebinding", list)
	answered(false)
}
