package access

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights are the objects of RBAC that count in a namespace. Rules of aggregated ClusterRoles are those that the cluster has filled in.
type Rights struct {
	Namespace       string
	Roles           map[string][]rbacv1.PolicyRule
	ClusterRoles    map[string][]rbacv1.PolicyRule
	Bindings        []rbacv1.RoleBinding
	ClusterBindings []rbacv1.ClusterRoleBinding
}

// Request is what an authorizer decides on.
type Request struct {
	Verb, Group, Resource, Subresource string
	Name                               string
	AnyName                            bool // of some object whose name is not known: a rule for one is enough
	OfCluster                          bool // not in a namespace: RoleBindings give no right to it
}

// Source is the binding that gives a right, and its role.
type Source struct {
	Kind string `json:"kind"` // RoleBinding or ClusterRoleBinding
	Name string `json:"name"`
	Role string `json:"role"` // such as ClusterRole edit
}

func (s Source) String() string { return fmt.Sprintf("%s %s (%s)", s.Kind, s.Name, s.Role) }

// Holders shows to visit each subject that has a right, and by which binding.
func (r *Rights) Holders(request Request, visit func(rbacv1.Subject, Source)) {
	for _, b := range r.ClusterBindings {
		r.each(request, Source{"ClusterRoleBinding", b.Name, ""}, b.RoleRef, b.Subjects, visit)
	}
	if request.OfCluster {
		return
	}
	for _, b := range r.Bindings {
		r.each(request, Source{"RoleBinding", b.Name, ""}, b.RoleRef, b.Subjects, visit)
	}
}

func (r *Rights) each(request Request, source Source, ref rbacv1.RoleRef, subjects []rbacv1.Subject, visit func(rbacv1.Subject, Source)) {
	rules := r.ClusterRoles[ref.Name]
	if ref.Kind == "Role" {
		rules = r.Roles[ref.Name]
	}
	if !request.AllowedBy(rules) {
		return
	}
	source.Role = ref.Kind + " " + ref.Name
	for _, subject := range subjects {
		if subject, ok := normal(subject, source, r.Namespace); ok {
			visit(subject, source)
		}
	}
}

// normal is a subject as Subject returns it: RBAC knows service accounts in several forms.
func normal(subject rbacv1.Subject, source Source, namespace string) (rbacv1.Subject, bool) {
	if subject.Kind == rbacv1.UserKind {
		if account, err := Subject(subject.Name, false); err == nil {
			return account, true
		}
	}
	if subject.Kind != rbacv1.ServiceAccountKind {
		return rbacv1.Subject{Kind: subject.Kind, APIGroup: rbacv1.GroupName, Name: subject.Name}, true
	}
	if subject.Namespace == "" && source.Kind == "RoleBinding" {
		subject.Namespace = namespace
	}
	return rbacv1.Subject{Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name}, subject.Namespace != ""
}

func (r Request) allowedBy(rule rbacv1.PolicyRule) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) &&
		(has(rule.Resources, resource) || r.Subresource != "" && slices.Contains(rule.Resources, "*/"+r.Subresource)) &&
		(len(rule.ResourceNames) == 0 || r.AnyName || slices.Contains(rule.ResourceNames, r.Name))
}

// AllowedBy reports whether one of the rules gives the right.
func (r Request) AllowedBy(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, r.allowedBy)
}

// Unknown shows to visit the bindings to roles that Rights lack: what they give is not known.
func (r *Rights) Unknown(visit func(Source, []rbacv1.Subject)) {
	look := func(source Source, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		roles := r.ClusterRoles
		if ref.Kind == "Role" {
			roles = r.Roles
		}
		if roles == nil {
			source.Role = ref.Kind + " " + ref.Name
			visit(source, subjects)
		}
	}
	for _, b := range r.ClusterBindings {
		look(Source{"ClusterRoleBinding", b.Name, ""}, b.RoleRef, b.Subjects)
	}
	for _, b := range r.Bindings {
		look(Source{"RoleBinding", b.Name, ""}, b.RoleRef, b.Subjects)
	}
}

// Sources are the bindings by which a user who is in groups has a right.
func (r *Rights) Sources(request Request, user rbacv1.Subject, groups []string) []Source {
	var sources []Source
	r.Holders(request, func(subject rbacv1.Subject, source Source) {
		if (subject == user || subject.Kind == rbacv1.GroupKind && slices.Contains(groups, subject.Name)) && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	})
	return sources
}

// UserName is the name by which the API server knows a subject.
func UserName(subject rbacv1.Subject) string {
	if subject.Kind == rbacv1.ServiceAccountKind {
		return accountUser + subject.Namespace + ":" + subject.Name
	}
	return subject.Name
}

// Groups are the groups that a subject is in, by what it is.
func Groups(subject rbacv1.Subject) []string {
	const all, accounts = "system:authenticated", "system:serviceaccounts"
	switch {
	case subject.Kind == rbacv1.ServiceAccountKind:
		return []string{accounts, accounts + ":" + subject.Namespace, all}
	case subject.Kind == rbacv1.GroupKind:
		return []string{subject.Name}
	case strings.HasPrefix(subject.Name, "system:anonymous"):
		return []string{"system:unauthenticated"}
	}
	return []string{all}
}
