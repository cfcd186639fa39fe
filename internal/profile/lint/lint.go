// Package lint looks at profiles of service accounts for what is wrong or doubtful. In go ServiceAccountProfiles and SecurityContextTemplates,
// as they stand in files; out come findings, each with its reason and its fix. It looks at these alone: it knows no cluster, and changes nothing.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext"
)

// Finding is one thing that is wrong with an object, or doubtful.
type Finding struct {
	// Object is its kind and name, as in ServiceAccountProfile shop/cart.
	Object string `json:"object"`
	// Rule is the name of what found it, in kebab case. Names stay.
	Rule string `json:"rule"`
	Path string `json:"path"`
	// Refused is true for what cannot work, and false for what is doubtful.
	Refused bool   `json:"refused"`
	Reason  string `json:"reason"`
	Fix     string `json:"fix"`
}

// Names of the rules.
const (
	SameUser        = "same-user"
	SameUsername    = "same-username"
	TwiceThere      = "twice-there"
	UnknownTemplate = "unknown-template"
	Invalid         = "invalid-context"
	RootAndNonRoot  = "root-and-non-root"
	Root            = "root"
	Privileged      = "privileged"
	EveryCapability = "every-capability"
	DefaultAccount  = "default-account"
)

// Rules are the names of all rules, in the order in which they are applied.
func Rules() []string {
	return []string{TwiceThere, UnknownTemplate, Invalid, RootAndNonRoot, Root, Privileged, EveryCapability, DefaultAccount, SameUser, SameUsername}
}

// Check returns the findings, in the order of the profiles, those about templates last.
func Check(profiles []accounts.ServiceAccountProfile, templates []accounts.SecurityContextTemplate) []Finding {
	l := &linter{templates: map[string]*accounts.SecurityContextTemplate{}, first: map[string]string{}}
	for i := range templates {
		l.templates[templates[i].Name] = &templates[i]
	}
	for i := range profiles {
		l.profile(&profiles[i])
	}
	for i := range templates {
		l.object = "SecurityContextTemplate " + templates[i].Name
		l.twice()
		l.contexts(templates[i].Spec, "spec")
	}
	return l.findings
}

type linter struct {
	templates map[string]*accounts.SecurityContextTemplate
	// first is the object that was the first with a thing that only one may have.
	first    map[string]string
	object   string
	findings []Finding
}

func (l *linter) found(rule, path string, refused bool, reason, fix string) {
	l.findings = append(l.findings, Finding{l.object, rule, path, refused, reason, fix})
}

// another returns the other object that has a thing, which is the first one's that has it.
func (l *linter) another(thing string) (string, bool) {
	other, there := l.first[thing]
	if !there {
		l.first[thing] = l.object
	}
	return other, there
}

func (l *linter) twice() {
	if _, there := l.another(l.object); there {
		l.found(TwiceThere, "metadata.name", true, "the object is there twice, and the last one that is applied stays", "remove one of the two")
	}
}

func (l *linter) profile(p *accounts.ServiceAccountProfile) {
	l.object = "ServiceAccountProfile " + cmp.Or(p.Namespace, "default") + "/" + p.Name
	l.twice()
	name := profile.TemplateOf(p)
	template := l.templates[name]
	at := "spec.securityContext"
	switch {
	case name != "" && template == nil:
		l.found(UnknownTemplate, at+".templateRef.name", false, fmt.Sprintf("SecurityContextTemplate %s is not among these objects: if the cluster has none of that name either, all pods of the account are refused", name),
			"look at it together with its template")
	case name == "" && p.Spec.SecurityContext != nil:
		l.contexts(p.Spec.SecurityContext.SecurityContexts, at)
	}
	if p.Name == "default" && (len(p.Spec.WorkloadIdentities) > 0 || p.Spec.AutomountToken != nil && *p.Spec.AutomountToken) {
		l.found(DefaultAccount, "metadata.name", false, "each pod of the namespace that names no account has this one, and so its token or its identities", "give them to an account of their own")
	}
	if user := securitycontext.Effective(profile.Resolve(p, template).Contexts.Pod, profile.Resolve(p, template).Contexts.Container).RunAsUser; user != nil {
		through := ""
		if name != "" {
			at, through = at+".templateRef.name", " through SecurityContextTemplate "+name
		}
		if other, there := l.another(fmt.Sprintf("user %d", *user)); there && other != l.object {
			l.found(SameUser, at, false, fmt.Sprintf("runAsUser %d%s is also that of %s: to shared file systems such as NFS both accounts are one owner", *user, through, other), "give each account a user of its own")
		}
	}
	if p.Spec.Username != "" {
		if other, there := l.another("username " + p.Spec.Username); there && other != l.object {
			l.found(SameUsername, "spec.username", true, fmt.Sprintf("the name %q is also that of %s: the first one of the cluster has it, the second one gets no token with it", p.Spec.Username, other), "give it a name of its own")
		}
	}
}

func (l *linter) contexts(c accounts.SecurityContexts, at string) {
	for _, err := range profile.Validate(c, nil) {
		l.found(Invalid, at+"."+strings.TrimPrefix(err.Field, "."), true, "Kubernetes would refuse it: "+err.ErrorBody(), "correct it: until then all pods of the account are refused")
	}
	effective := securitycontext.Effective(c.Pod, c.Container)
	if user := effective.RunAsUser; user != nil && *user == 0 {
		if effective.RunAsNonRoot != nil && *effective.RunAsNonRoot {
			l.found(RootAndNonRoot, at, true, "runAsUser is 0 and runAsNonRoot is true: a kubelet starts no such container", "set runAsUser to another user")
		} else {
			l.found(Root, at, false, "runAsUser is 0: containers that leave it open become root", "leave it out, or set another user and runAsNonRoot")
		}
	}
	if effective.Privileged != nil && *effective.Privileged {
		l.found(Privileged, at+".container.privileged", false, "containers that leave it open become privileged", "leave it out, and set it in the pods that need it")
	}
	if effective.Capabilities != nil && slices.Contains(effective.Capabilities.Add, corev1.Capability("ALL")) {
		l.found(EveryCapability, at+".container.capabilities.add", false, "containers that leave capabilities open get all of them", "name those that are needed")
	}
	if w := c.Windows; w != nil && w.HostProcess != nil && *w.HostProcess {
		l.found(Privileged, at+".windows.hostProcess", false, "Windows containers that leave it open become processes of the host", "leave it out, and set it in the pods that need it")
	}
}
