package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// A user who looks at Events sees who changed a key and why. A change that relying parties may notice is a warning.
func TestEventsOfKeys(t *testing.T) {
	for want, event := range map[string]keys.Event{
		"Warning KeyRevoked ES256 key kid was revoked, by anna: found in a backup": {
			Kind: keys.Revoked, Algorithm: "ES256", Key: "kid", Cause: keys.Cause{By: "anna", Reason: "found in a backup"}},
		"Normal RotationRequested RS256 key kid was requested to be rotated away, by anna: yearly": {
			Kind: keys.Requested, Algorithm: "RS256", Key: "kid", Cause: keys.Cause{By: "anna", Reason: "yearly"}},
		"Warning KeyActivated ES256 key kid was activated, before every relying party could know it, by anna: now": {
			Kind: keys.Activated, Algorithm: "ES256", Key: "kid", AcceptRefusals: true, Cause: keys.Cause{By: "anna", Reason: "now"}},
	} {
		recorder := record.NewFakeRecorder(1)
		events{recorder}.key(&v1alpha1.KeyRing{}, event)
		if got := <-recorder.Events; got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
}

// A condition is reported when it becomes false, gets another reason, or is true again.
func TestEventsOfConditions(t *testing.T) {
	ring := func(status metav1.ConditionStatus, reason string) *v1alpha1.KeyRing {
		return &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: "text"}}}}
	}
	for name, test := range map[string]struct {
		before, after *v1alpha1.KeyRing
		want          string
	}{
		"new and true":   {&v1alpha1.KeyRing{}, ring("True", "Fine"), ""},
		"new and false":  {&v1alpha1.KeyRing{}, ring("False", "Lost"), "Warning Lost text"},
		"still false":    {ring("False", "Lost"), ring("False", "Lost"), ""},
		"another reason": {ring("False", "Lost"), ring("False", "Damaged"), "Warning Damaged text"},
		"true again":     {ring("False", "Lost"), ring("True", "Fine"), "Normal Fine text"},
	} {
		recorder := record.NewFakeRecorder(1)
		events{recorder}.conditions(test.before, test.after)
		close(recorder.Events)
		if got := <-recorder.Events; got != test.want {
			t.Errorf("%s: event %q, want %q", name, got, test.want)
		}
	}
}

// Authorities that can't be read are an error, never those of the machine.
func TestAuthoritiesOfThePublicLook(t *testing.T) {
	if pool, err := authorities(""); pool != nil || err != nil {
		t.Errorf("without a file: %v, %v", pool, err)
	}
	empty := filepath.Join(t.TempDir(), "ca.crt")
	testkit.Must(t, os.WriteFile(empty, []byte("text"), 0o600))
	for file, want := range map[string]string{empty: "holds no certificate", empty + "-missing": "no such file"} {
		c := checked{Config: Config{PublishCheckURL: "https://a.example", PublishCheckCAFile: file}}
		if _, err := newLook(c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
