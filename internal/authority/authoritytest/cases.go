// Package authoritytest has the table of cases of the rule of use, which is written twice: as the questions of package authority, and in
// CEL, in the admission policies. In go nothing but names, out come subjects, objects, the grants that exist, and what the rule decides.
// Tests run each case against both.
package authoritytest

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/authority"
)

// Grant is a Role with one rule, and its RoleBinding.
type Grant struct {
	Namespace string
	To        rbacv1.Subject
	Rule      rbacv1.PolicyRule
}

// Case is a subject that uses an object of a namespace: a user who labels a Secret or makes a pod of a service account, or a service account
// whose pod refers to the object.
type Case struct {
	Name string
	// Account is the name of the service account that is the subject; empty: it is a user.
	Account string
	Subject authority.Subject
	Object  authority.Object
	Grants  []Grant
	Allowed bool
}

// Question is the question that the case answers.
func (c Case) Question() authority.Question {
	return authority.Use(c.Subject, c.Object.Kind, c.Object.Namespace, c.Object.Name)
}

// Cases are the cases of two namespaces. Each has a subject and an object of its own, whose name has the prefix.
func Cases(namespace, other, prefix string) []Case {
	identity, binding, spec, serviceAccount := authority.WorkloadIdentities, authority.CredentialsBindings, authority.GMSACredentialSpecs, authority.ServiceAccounts
	everyone := group("system:authenticated")
	return []Case{
		user(identity, namespace, prefix+"u-nothing", false),
		user(identity, namespace, prefix+"u-by-name", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)) }),
		user(identity, namespace, prefix+"u-by-group", true, func(c Case) Grant { return c.grant(group(c.Subject.Groups[0])) }),
		user(identity, namespace, prefix+"u-as-everyone", true, func(c Case) Grant { return c.grant(everyone) }),
		user(identity, namespace, prefix+"u-all-objects", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(identity, "", "use") }),
		user(identity, namespace, prefix+"u-as-account", false, func(c Case) Grant { return c.grant(account(namespace, c.Subject.Name)) }),
		user(identity, namespace, prefix+"u-other-object", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(identity, "another", "use") }),
		user(identity, namespace, prefix+"u-other-kind", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(spec, c.Object.Name, "use") }),
		user(identity, namespace, prefix+"u-binding", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(binding, c.Object.Name, "use") }),
		user(identity, namespace, prefix+"u-other-verb", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(identity, c.Object.Name, "get") }),
		user(identity, namespace, prefix+"u-elsewhere", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).in(other) }),

		user(binding, namespace, prefix+"b-nothing", false),
		user(binding, namespace, prefix+"b-by-name", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)) }),
		user(binding, namespace, prefix+"b-by-group", true, func(c Case) Grant { return c.grant(group(c.Subject.Groups[0])) }),
		user(binding, namespace, prefix+"b-all-objects", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(binding, "", "use") }),
		user(binding, namespace, prefix+"b-other-object", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(binding, "another", "use") }),
		user(binding, namespace, prefix+"b-identity", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(identity, c.Object.Name, "use") }),
		user(binding, namespace, prefix+"b-other-verb", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(binding, c.Object.Name, "get") }),
		user(binding, namespace, prefix+"b-elsewhere", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).in(other) }),

		user(serviceAccount, namespace, prefix+"s-nothing", false),
		user(serviceAccount, namespace, prefix+"s-by-name", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)) }),
		user(serviceAccount, namespace, prefix+"s-by-group", true, func(c Case) Grant { return c.grant(group(c.Subject.Groups[0])) }),
		user(serviceAccount, namespace, prefix+"s-all-objects", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(serviceAccount, "", "use") }),
		user(serviceAccount, namespace, prefix+"s-other-object", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(serviceAccount, "another", "use") }),
		user(serviceAccount, namespace, prefix+"s-other-kind", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).of(identity, c.Object.Name, "use") }),
		user(serviceAccount, namespace, prefix+"s-other-verb", false, func(c Case) Grant {
			return c.grant(rbacUser(c.Subject.Name)).of(serviceAccount, c.Object.Name, "impersonate")
		}),
		user(serviceAccount, namespace, prefix+"s-elsewhere", false, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)).in(other) }),

		pod(namespace, prefix+"a-nothing", false),
		pod(namespace, prefix+"a-by-name", true, func(c Case) Grant { return c.grant(account(namespace, c.Account)) }),
		pod(namespace, prefix+"a-as-user", true, func(c Case) Grant { return c.grant(rbacUser(c.Subject.Name)) }),
		pod(namespace, prefix+"a-of-namespace", true, func(c Case) Grant { return c.grant(group("system:serviceaccounts:" + namespace)) }),
		pod(namespace, prefix+"a-of-accounts", true, func(c Case) Grant { return c.grant(group("system:serviceaccounts")) }),
		pod(namespace, prefix+"a-all-objects", true, func(c Case) Grant { return c.grant(account(namespace, c.Account)).of(spec, "", "use") }),
		pod(namespace, prefix+"a-as-everyone", false, func(c Case) Grant { return c.grant(everyone) }),
		pod(namespace, prefix+"a-of-other", false, func(c Case) Grant { return c.grant(group("system:serviceaccounts:" + other)) }),
		pod(namespace, prefix+"a-namesake", false, func(c Case) Grant { return c.grant(account(other, c.Account)) }),
		pod(namespace, prefix+"a-plain-user", false, func(c Case) Grant { return c.grant(rbacUser(c.Account)) }),
		pod(namespace, prefix+"a-other-object", false, func(c Case) Grant { return c.grant(account(namespace, c.Account)).of(spec, "another", "use") }),
		pod(namespace, prefix+"a-other-kind", false, func(c Case) Grant { return c.grant(account(namespace, c.Account)).of(identity, c.Object.Name, "use") }),
		pod(namespace, prefix+"a-other-verb", false, func(c Case) Grant { return c.grant(account(namespace, c.Account)).of(spec, c.Object.Name, "get") }),
		pod(namespace, prefix+"a-elsewhere", false, func(c Case) Grant { return c.grant(account(namespace, c.Account)).in(other) }),
	}
}

// user is the case of a user who labels a Secret, or makes a pod of a service account.
func user(kind authority.Kind, namespace, name string, allowed bool, grants ...func(Case) Grant) Case {
	return Case{
		Name: name, Subject: authority.Subject{Name: name, Groups: []string{name + "-group", "system:authenticated"}},
		Object: authority.Object{Kind: kind, Namespace: namespace, Name: name}, Allowed: allowed,
	}.with(grants)
}

// pod is the case of the service account of a Windows pod.
func pod(namespace, name string, allowed bool, grants ...func(Case) Grant) Case {
	return Case{
		Name: name, Account: name, Subject: authority.ServiceAccount(namespace, name, ""),
		Object: authority.Object{Kind: authority.GMSACredentialSpecs, Namespace: namespace, Name: name}, Allowed: allowed,
	}.with(grants)
}

func (c Case) with(grants []func(Case) Grant) Case {
	for _, grant := range grants {
		c.Grants = append(c.Grants, grant(c))
	}
	return c
}

// grant gives the object of the case to use.
func (c Case) grant(to rbacv1.Subject) Grant {
	return Grant{Namespace: c.Object.Namespace, To: to}.of(c.Object.Kind, c.Object.Name, "use")
}

// of is the grant of another right; without a name, to all objects.
func (g Grant) of(kind authority.Kind, name, verb string) Grant {
	g.Rule = rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}, Verbs: []string{verb}}
	if name != "" {
		g.Rule.ResourceNames = []string{name}
	}
	return g
}

func (g Grant) in(namespace string) Grant {
	g.Namespace = namespace
	return g
}

func rbacUser(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}
