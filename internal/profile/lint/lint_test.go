package lint_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile/lint"
)

type change = func(*accounts.ServiceAccountProfileSpec)

func of(name string, changes ...change) accounts.ServiceAccountProfile {
	p := accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, c := range changes {
		c(&p.Spec)
	}
	return p
}

func with(c accounts.SecurityContexts) change {
	return func(s *accounts.ServiceAccountProfileSpec) {
		s.SecurityContext = &accounts.ProfileSecurityContext{SecurityContexts: c}
	}
}

func by(template string) change {
	return func(s *accounts.ServiceAccountProfileSpec) {
		s.SecurityContext = &accounts.ProfileSecurityContext{TemplateRef: &accounts.TemplateReference{Name: template}}
	}
}

func user(n int64) accounts.SecurityContexts {
	return accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsUser: &n}}
}

func container(c corev1.SecurityContext) accounts.SecurityContexts {
	return accounts.SecurityContexts{Container: &c}
}

func template(name string, c accounts.SecurityContexts) accounts.SecurityContextTemplate {
	return accounts.SecurityContextTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: c}
}

// Each rule has an object that it finds, and one like it that it does not.
func TestRules(t *testing.T) {
	named := func(name string) change {
		return func(s *accounts.ServiceAccountProfileSpec) { s.Username = name }
	}
	identities := func(s *accounts.ServiceAccountProfileSpec) { s.WorkloadIdentities = []string{"a"} }
	seen := map[string]bool{}
	for _, c := range []struct {
		name      string
		profiles  []accounts.ServiceAccountProfile
		templates []accounts.SecurityContextTemplate
		rule      string
		refused   bool
	}{
		{"nothing", []accounts.ServiceAccountProfile{of("a"), of("b")}, nil, "", false},
		{"users of their own", []accounts.ServiceAccountProfile{of("a", with(user(1))), of("b", with(user(2)))}, nil, "", false},
		{"one user", []accounts.ServiceAccountProfile{of("a", with(user(1))), of("b", with(user(1)))}, nil, lint.SameUser, false},
		{"one user, of containers", []accounts.ServiceAccountProfile{of("a", with(user(1))), of("b", with(container(corev1.SecurityContext{RunAsUser: new(int64(1))})))}, nil, lint.SameUser, false},
		{"a container's goes before its pod's", []accounts.ServiceAccountProfile{of("a", with(user(1))), of("b", with(accounts.SecurityContexts{
			Pod: &corev1.PodSecurityContext{RunAsUser: new(int64(1))}, Container: &corev1.SecurityContext{RunAsUser: new(int64(2))},
		}))}, nil, "", false},
		{"one user, by one template", []accounts.ServiceAccountProfile{of("a", by("t")), of("b", by("t"))}, []accounts.SecurityContextTemplate{template("t", user(1))}, lint.SameUser, false},
		{"one user, by two templates", []accounts.ServiceAccountProfile{of("a", by("t")), of("b", by("u"))}, []accounts.SecurityContextTemplate{template("t", user(1)), template("u", user(1))}, lint.SameUser, false},
		{"a template without a user", []accounts.ServiceAccountProfile{of("a", by("t")), of("b", by("t"))}, []accounts.SecurityContextTemplate{template("t", accounts.SecurityContexts{})}, "", false},
		{"a template that is elsewhere", []accounts.ServiceAccountProfile{of("a", by("t"))}, nil, lint.UnknownTemplate, false},
		{"twice", []accounts.ServiceAccountProfile{of("a"), of("a")}, nil, lint.TwiceThere, true},
		{"a template twice", nil, []accounts.SecurityContextTemplate{template("t", accounts.SecurityContexts{}), template("t", accounts.SecurityContexts{})}, lint.TwiceThere, true},
		{"names of their own", []accounts.ServiceAccountProfile{of("a", named("x@y")), of("b", named("z@y"))}, nil, "", false},
		{"one name", []accounts.ServiceAccountProfile{of("a", named("x@y")), of("b", named("x@y"))}, nil, lint.SameUsername, true},
		{"a negative user", []accounts.ServiceAccountProfile{of("a", with(user(-1)))}, nil, lint.Invalid, true},
		{"root", []accounts.ServiceAccountProfile{of("a", with(user(0)))}, nil, lint.Root, false},
		{"root of a template", nil, []accounts.SecurityContextTemplate{template("t", user(0))}, lint.Root, false},
		{"root that is not root", []accounts.ServiceAccountProfile{of("a", with(accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)}}))}, nil, lint.RootAndNonRoot, true},
		{"privileged", []accounts.ServiceAccountProfile{of("a", with(container(corev1.SecurityContext{Privileged: new(true)})))}, nil, lint.Privileged, false},
		{"not privileged", []accounts.ServiceAccountProfile{of("a", with(container(corev1.SecurityContext{Privileged: new(false)})))}, nil, "", false},
		{"a process of the host", []accounts.ServiceAccountProfile{of("a", with(accounts.SecurityContexts{Windows: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}))}, nil, lint.Privileged, false},
		{"all capabilities", []accounts.ServiceAccountProfile{of("a", with(container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"ALL"}}})))}, nil, lint.EveryCapability, false},
		{"no capabilities", []accounts.ServiceAccountProfile{of("a", with(container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}})))}, nil, "", false},
		{"identities of default", []accounts.ServiceAccountProfile{of("default", identities)}, nil, lint.DefaultAccount, false},
		{"default without", []accounts.ServiceAccountProfile{of("default", func(s *accounts.ServiceAccountProfileSpec) { s.AutomountToken = new(false) })}, nil, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := lint.Check(c.profiles, c.templates)
			if c.rule == "" {
				if len(findings) > 0 {
					t.Errorf("found %+v", findings)
				}
				return
			}
			seen[c.rule] = true
			if len(findings) != 1 || findings[0].Rule != c.rule || findings[0].Refused != c.refused || findings[0].Path == "" || findings[0].Fix == "" {
				t.Errorf("found %+v, want %s, refused %v", findings, c.rule, c.refused)
			}
		})
	}
	for _, rule := range lint.Rules() {
		if !seen[rule] {
			t.Errorf("no case for %s", rule)
		}
	}
	for rule := range seen {
		if !slices.Contains(lint.Rules(), rule) {
			t.Errorf("%s is not among the rules", rule)
		}
	}
}
