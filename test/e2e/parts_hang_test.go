package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hungParts are the parts of a plane, one of which hangs at a time, and the check of doctor that names it.
var hungParts = []struct {
	name, check, detail string
	// meanwhile does what shows that the part hangs, where nothing else does.
	meanwhile func(*testing.T, plane)
	// explain is what explain has about a pod meanwhile; empty: no pod waits for the part.
	explain string
}{
	{name: "webhook", check: "webhook", detail: `failed calling webhook "`, explain: `failed calling webhook "`},
	{name: "discovery", check: "issuer", detail: "deadline exceeded"},
	{name: "binder", check: "binder", detail: "no RoleBinding credence:agent:secrets", meanwhile: func(t *testing.T, p plane) {
		p.enable(t, p.namespace(t))
	}},
	{name: "profiles", check: "profiles", detail: "no replica holds the Lease credence-system/credence-profiles"},
	{name: "controller", check: "controller", detail: "no replica holds the Lease credence-system/credence-controller"},
	{name: "agent", check: "agent", detail: "no replica holds the Lease credence-system/credence-agent", explain: "no agent has looked at this pod"},
	{name: "apiserver", check: "apiservice", detail: "v1alpha1.authentication.gardener.cloud is not available"},
}

// The doctor names a part that hangs within a minute, and explain does where a pod is concerned. Once the part goes on, both are content.
func TestPlaneDoctorNamesPartsThatHang(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	namespace := p.accountWithIdentities(t, "banana")
	for _, part := range hungParts {
		if names := func(c component) bool { return c.Name == part.name }; !slices.ContainsFunc(p.Components, names) {
			t.Fatalf("the plane has no %s", part.name)
		}
		named := func() error {
			found, text := p.doctor(t)
			for _, f := range found {
				if f.Check == part.check && f.Verdict != "pass" && f.Verdict != "skipped" && strings.Contains(f.Detail, part.detail) {
					return nil
				}
			}
			return fmt.Errorf("%s hangs, and the doctor does not say so:\n%s", part.name, text)
		}
		eventually(t, func() error {
			if named() == nil {
				return fmt.Errorf("%s works, and the doctor finds: %s", part.name, part.detail)
			}
			return nil
		})
		resume := p.suspend(t, part.name)
		since := time.Now()
		pod := ""
		if part.explain != "" && part.name != "webhook" {
			pod = need(p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t).Name
		}
		if part.meanwhile != nil {
			part.meanwhile(t, p)
		}
		waitFor(t, 2*time.Minute, named) // a machine under load
		t.Logf("%s: named after %s", part.name, time.Since(since).Round(time.Second))
		switch {
		case pod != "":
			p.explained(t, 1, []string{part.explain}, "pod", pod, "-n", namespace)
		case part.explain != "":
			p.explained(t, 1, []string{part.explain}, "-f", "-", "-n", namespace)
		}
		resume()
	}
	eventually(t, func() error {
		found, text := p.doctor(t)
		for _, part := range hungParts {
			if !slices.ContainsFunc(found, func(f finding) bool { return f.Check == part.check && f.Verdict == "pass" }) {
				return fmt.Errorf("no part hangs any more, and %s does not pass:\n%s", part.check, text)
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
