package e2e_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/pki"
)

// brokenPart is a part of a plane with a fault, and the finding of doctor that names it.
type brokenPart struct {
	name, fault   string
	check, detail string
	// explain is what explain has about a pod meanwhile; empty: no pod waits for the part, or is refused.
	explain string
}

// The faults. Each returns what mends it.
var faults = map[string]func(*testing.T, plane, string) func(){
	"hangs": func(t *testing.T, p plane, name string) func() { return p.suspend(t, name) },
	// Ends whenever it is started: its kubeconfig can't be read.
	"stops": func(t *testing.T, p plane, name string) func() {
		return p.replaced(t, name, map[string][]byte{"kubeconfig": []byte("{")})
	},
	"has an expired certificate": func(t *testing.T, p plane, name string) func() {
		pair := p.expired(t, name)
		return p.replaced(t, name, map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key})
	},
	"has no rights": func(t *testing.T, p plane, name string) func() { return p.unbound(t, name) },
}

// brokenParts are all parts with the faults that are seen soon. Where no object of the API has the state of a part, its work is missing.
func brokenParts() []brokenPart {
	const lease = "no replica holds the Lease credence-system/credence-"
	parts := []brokenPart{
		{"webhook", "hangs", "webhook", `failed calling webhook "`, `failed calling webhook "`},
		{"discovery", "hangs", "issuer", "deadline exceeded", ""},
		{"binder", "hangs", "binder", "no RoleBinding credence:agent:secrets", ""},
		{"profiles", "hangs", "profiles", lease + "profiles", ""},
		{"controller", "hangs", "controller", lease + "controller", ""},
		{"agent", "hangs", "agent", lease + "agent", "no agent has looked at this pod"},
		{"apiserver", "hangs", "apiservice", "v1alpha1.authentication.gardener.cloud is not available", ""},
		{"webhook", "has an expired certificate", "webhook", "certificate has expired", "certificate has expired"},
		{"discovery", "has an expired certificate", "issuer", "tls-expiry: expired", ""},
		{"apiserver", "has an expired certificate", "apiservice", "certificate has expired", ""},
	}
	for _, name := range []string{"webhook", "discovery", "binder", "profiles", "controller", "agent", "apiserver"} {
		parts = append(parts, brokenPart{name: name, fault: "has no rights", check: "installation", detail: "is missing"})
	}
	if os.Getenv("CREDENCE_PART_FAULTS") == "all" { // about as long again
		for _, each := range parts[:7] {
			each.fault = "stops"
			each.detail = strings.Replace(each.detail, "deadline exceeded", "connection refused", 1)
			parts = append(parts, each)
		}
	}
	return parts
}

// The doctor names a part with a fault within a minute, and explain does where a pod is concerned. Once the fault is mended, both are content.
func TestPlaneDoctorNamesBrokenParts(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	namespace := p.accountWithIdentities(t, "banana")
	for _, part := range brokenParts() {
		named := func() error {
			found, text := p.doctor(t)
			for _, f := range found {
				if f.Check == part.check && f.Verdict != "pass" && f.Verdict != "skipped" && strings.Contains(f.Detail, part.detail) {
					return nil
				}
			}
			return fmt.Errorf("%s %s, and the doctor does not report it:\n%s", part.name, part.fault, text)
		}
		eventually(t, func() error {
			if named() == nil {
				return fmt.Errorf("%s works, and the doctor finds: %s", part.name, part.detail)
			}
			return nil
		})
		mend := faults[part.fault](t, p, part.name)
		since := time.Now()
		arguments := []string{"-f", "-"}
		if part.name == "agent" && part.explain != "" {
			arguments = []string{"pod", need(p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t).Name}
		}
		if part.check == "binder" {
			p.enable(t, p.namespace(t))
		}
		waitFor(t, 2*time.Minute, named) // a machine under load
		t.Logf("%s %s: named after %s", part.name, part.fault, time.Since(since).Round(time.Second))
		if part.explain != "" {
			p.explained(t, 1, []string{part.explain}, append(arguments, "-n", namespace)...)
		}
		mend()
	}
	eventually(t, func() error {
		found, text := p.doctor(t)
		for _, part := range brokenParts() {
			if !slices.ContainsFunc(found, func(f finding) bool { return f.Check == part.check && f.Verdict == "pass" }) {
				return fmt.Errorf("no part has a fault any more, and %s does not pass:\n%s", part.check, text)
			}
		}
		return nil
	})
}

// finding is one of the doctor's.
type finding struct{ Check, Verdict, Detail string }

// doctor returns what the doctor finds in a plane.
func (p plane) doctor(t *testing.T) (found []finding, text string) {
	t.Helper()
	text, stderr, _ := p.command(t, "", "credence", "doctor", "--ca-file", p.CAFile, "-o", "json")
	var diagnosis struct{ Checks []finding }
	if err := json.Unmarshal([]byte(text), &diagnosis); err != nil {
		t.Fatalf("%v:\n%s%s", err, text, stderr)
	}
	return diagnosis.Checks, text
}

// replaced gives a part other files, and starts it again. The returned function does the same with the files of before.
func (p plane) replaced(t *testing.T, name string, files map[string][]byte) (mend func()) {
	t.Helper()
	before := map[string][]byte{}
	for file := range files {
		before[file] = need(os.ReadFile(filepath.Join(p.Dir, "pki", name, file)))(t)
	}
	start := func(files map[string][]byte) {
		for file, content := range files {
			expect(t, os.WriteFile(filepath.Join(p.Dir, "pki", name, file), content, 0o600))
		}
		now := need(readPlane(p.Dir))(t)
		if at := slices.IndexFunc(now.Components, func(c component) bool { return c.Name == name }); at >= 0 { // or it ended already
			_ = syscall.Kill(now.Components[at].PID, syscall.SIGKILL)
		}
	}
	start(files)
	return func() { start(before) }
}

// expired is a certificate as a part has it, that ended a day ago.
func (p plane) expired(t *testing.T, name string) pki.Pair {
	t.Helper()
	read := func(path ...string) []byte {
		return need(os.ReadFile(filepath.Join(append([]string{p.Dir}, path...)...)))(t)
	}
	authority := need(pki.Load(read("devcluster", "pki", "ca.crt"), read("devcluster", "pki", "ca.key"), time.Now()))(t)
	block, _ := pem.Decode(read("pki", name, "tls.crt"))
	now := need(x509.ParseCertificate(block.Bytes))(t)
	request := pki.Request{CommonName: now.Subject.CommonName, Hosts: now.DNSNames, IPs: now.IPAddresses, Lifetime: time.Hour}
	return need(authority.Issue(request, time.Now().Add(-24*time.Hour), rand.Reader))(t)
}

// unbound deletes the bindings of a part that doctor compares, until the returned function is called.
func (p plane) unbound(t *testing.T, name string) (mend func()) {
	t.Helper()
	rbac := p.client(t).RbacV1()
	ours := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == "credence-"+name && s.Namespace == "credence-system" })
	}
	var mends []func() error
	for _, b := range need(rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{}))(t).Items {
		if ours(b.Subjects) {
			mends = append(mends, func() error {
				_, err := rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: b.Labels}, RoleRef: b.RoleRef, Subjects: b.Subjects}, metav1.CreateOptions{})
				return err
			})
			must(t, rbac.ClusterRoleBindings().Delete(t.Context(), b.Name, metav1.DeleteOptions{}))
		}
	}
	for _, b := range need(rbac.RoleBindings("credence-system").List(t.Context(), metav1.ListOptions{}))(t).Items {
		if ours(b.Subjects) {
			mends = append(mends, func() error {
				_, err := rbac.RoleBindings(b.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: b.Labels}, RoleRef: b.RoleRef, Subjects: b.Subjects}, metav1.CreateOptions{})
				return err
			})
			must(t, rbac.RoleBindings(b.Namespace).Delete(t.Context(), b.Name, metav1.DeleteOptions{}))
		}
	}
	if len(mends) == 0 {
		t.Fatalf("%s has no bindings", name)
	}
	return func() {
		for _, mend := range mends {
			expect(t, mend())
		}
	}
}
