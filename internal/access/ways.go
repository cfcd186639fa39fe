package access

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// ModeLabel is the label of namespaces in which users need the right to use an account: with the values audit, warn and Enforce.
	ModeLabel = "identity.credence.dev/account-use"
	// Enforce is the value of ModeLabel with which users without the right are refused.
	Enforce = "enforce"
)

// Way is a way to become an account.
type Way struct {
	Name     string
	Requests []Request
	// ByUse is true if the policies require use as well: where they enforce it, the way is one of users who have it.
	ByUse bool
}

// Ways are all ways to become an account that RBAC decides on. tokens are the names of its token Secrets.
func Ways(account Account, tokens []string) []Way {
	each := func(verbs []string, request Request) []Request {
		requests := make([]Request, 0, len(verbs))
		for _, verb := range verbs {
			request.Verb = verb
			requests = append(requests, request)
		}
		return requests
	}
	write := []string{"create", "update", "patch"}
	var secrets, templates []Request
	for _, token := range tokens {
		// The answer to a write, or to a deletion that is tried out, is the Secret.
		secrets = append(secrets, each([]string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}, Request{Resource: "secrets", Name: token})...)
	}
	for _, kind := range []struct{ group, resource string }{
		{"", "replicationcontrollers"}, {"apps", "deployments"}, {"apps", "statefulsets"}, {"apps", "daemonsets"}, {"apps", "replicasets"},
		{"apps", "controllerrevisions"}, {"batch", "jobs"}, {"batch", "cronjobs"},
	} {
		templates = append(templates, Request{Verb: "create", Group: kind.group, Resource: kind.resource})
		templates = append(templates, each(write[1:], Request{Group: kind.group, Resource: kind.resource, AnyName: true})...)
	}
	exec := []string{"get", "create"} // get: by WebSockets, on older API servers
	return []Way{
		{"use", []Request{{Verb: "use", Resource: "serviceaccounts", Name: account.Name}}, false},
		{"impersonate", []Request{
			{Verb: "impersonate", Resource: "serviceaccounts", Name: account.Name},
			{Verb: "impersonate:serviceaccount", Group: "authentication.k8s.io", Resource: "serviceaccounts", Name: account.Name},
		}, false},
		{"serviceaccounts/token", []Request{{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: account.Name}}, true},
		{"read its token Secrets", secrets, false},
		{"make token Secrets", []Request{{Verb: "create", Resource: "secrets"}}, true},
		{"pods/exec", each(exec, Request{Resource: "pods", Subresource: "exec", AnyName: true}), false},
		{"pods/attach", each(exec, Request{Resource: "pods", Subresource: "attach", AnyName: true}), false},
		{"nodes/proxy", each(exec, Request{Resource: "nodes", Subresource: "proxy", AnyName: true, OfCluster: true}), false},
		{"ephemeral containers", each(write[1:], Request{Resource: "pods", Subresource: "ephemeralcontainers", AnyName: true}), true},
		{"write pods", append([]Request{{Verb: "create", Resource: "pods"}}, each(write[1:], Request{Resource: "pods", AnyName: true})...), true},
		{"write templates", templates, true},
	}
}

// Holder is a subject that can become an account, in one way.
type Holder struct {
	Subject rbacv1.Subject `json:"subject"`
	Way     string         `json:"way"`
	By      []Source       `json:"by"`
}

// CanBecome returns the subjects that can become an account: users first, the cluster's own last.
func (r *Rights) CanBecome(account Account, tokens []string, mode string) []Holder {
	var holders []Holder
	for _, way := range Ways(account, tokens) {
		if way.ByUse && mode == Enforce {
			continue
		}
		begin := len(holders)
		for _, request := range way.Requests {
			r.Holders(request, func(subject rbacv1.Subject, source Source) {
				at := slices.IndexFunc(holders[begin:], func(h Holder) bool { return h.Subject == subject })
				if at < 0 {
					at = len(holders) - begin
					holders = append(holders, Holder{Subject: subject, Way: way.Name})
				}
				if h := &holders[begin+at]; !slices.Contains(h.By, source) {
					h.By = append(h.By, source)
				}
			})
		}
	}
	slices.SortStableFunc(holders, func(a, b Holder) int {
		return cmp.Or(compareBool(ofTheCluster(a.Subject), ofTheCluster(b.Subject)), -cmp.Compare(a.Subject.Kind, b.Subject.Kind), compareSubjects(a.Subject, b.Subject))
	})
	return holders
}

func ofTheCluster(subject rbacv1.Subject) bool {
	return subject.Namespace == "kube-system" || strings.HasPrefix(subject.Name, "system:")
}

// MayUse reports whether RBAC lets the account use an object.
func (r *Rights) MayUse(account Account, group, resource, name string) bool {
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	return len(r.Sources(Request{Verb: "use", Group: group, Resource: resource, Name: name}, subject, Groups(subject))) > 0
}
