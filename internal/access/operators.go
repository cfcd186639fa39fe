package access

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Controllers is the ClusterRole of the controllers that make pods for the authors of workloads, and so may use every account.
const Controllers = "credence:controllers"

// Operators are the service accounts that have the ClusterRole Controllers in the whole cluster, without those of Kubernetes' own controllers.
func Operators(bindings []rbacv1.ClusterRoleBinding) []Account {
	var operators []Account
	for _, binding := range bindings {
		if binding.RoleRef.Name != Controllers {
			continue
		}
		for _, subject := range binding.Subjects {
			subject, ok := normal(subject, Source{Kind: "ClusterRoleBinding"}, "")
			if operator := (Account{subject.Namespace, subject.Name}); ok && subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace != "kube-system" && !slices.Contains(operators, operator) {
				operators = append(operators, operator)
			}
		}
	}
	return operators
}

// Kind is a resource of a group of the API.
type Kind struct{ Group, Resource string }

// Kinds are the custom resources that policies of these names check the authors of.
func Kinds(policies []string) []Kind {
	var kinds []Kind
	for _, name := range policies {
		kind, ours := strings.CutPrefix(name, Policies)
		if resource, group, custom := strings.Cut(kind, "."); ours && custom {
			kinds = append(kinds, Kind{group, resource})
		}
	}
	return kinds
}

// Follows reports whether an account may watch one of the kinds, as their operator does.
func (r *Rights) Follows(account Account, kinds []Kind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool {
		return len(r.Sources(Request{Verb: "watch", Group: k.Group, Resource: k.Resource}, account.subject(), Groups(account.subject()))) > 0
	})
}

// Tenants are the subjects that can become an account by a binding of its namespace, beside the account itself. Mode is that of the namespace.
func (r *Rights) Tenants(account Account, mode string) []Holder {
	var tenants []Holder
	for _, holder := range r.CanBecome(account, nil, mode) {
		holder.By = slices.DeleteFunc(holder.By, func(s Source) bool { return s.Kind != "RoleBinding" })
		if len(holder.By) > 0 && holder.Subject != account.subject() {
			tenants = append(tenants, holder)
		}
	}
	return tenants
}

func (a Account) subject() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}
}
