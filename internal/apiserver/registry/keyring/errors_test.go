package keyring

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A command that a ring refuses, an older ring included, is a conflict with its reason. Other failures are internal errors.
func TestFailures(t *testing.T) {
	superseded := fmt.Errorf("load the ring of keys: %w (a key)", operation.ErrSuperseded)
	for name, test := range map[string]struct {
		err   error
		code  int32
		cause metav1.CauseType
	}{
		"refused":                 {&keys.Refused{Reason: keys.TooYoung, Message: "m"}, 409, "TooYoung"},
		"of an older ring":        {superseded, 409, "RingSuperseded"},
		"of an older ring, saved": {fmt.Errorf("%w: %w", operation.ErrUnknownOutcome, superseded), 500, ""},
		"not known":               {operation.ErrUnknownOutcome, 500, ""},
		"no ring":                 {keystore.ErrNotFound, 500, ""},
		"an outage":               {errors.New("no route to host"), 500, ""},
	} {
		var answer apierrors.APIStatus
		if !errors.As(failure("workload-identities", test.err), &answer) {
			t.Fatalf("%s: no answer", name)
		}
		status := answer.Status()
		if status.Code != test.code || test.cause != "" && (status.Reason != metav1.StatusReasonConflict || status.Details.Causes[0].Type != test.cause) {
			t.Errorf("%s: %+v, want %d %s", name, status, test.code, test.cause)
		}
		if !strings.Contains(status.Message, test.err.Error()) {
			t.Errorf("%s: message %q, want %q", name, status.Message, test.err)
		}
	}
}

func TestRecordableNames(t *testing.T) {
	for name, want := range map[string]string{
		"jane":                         "jane",
		"system:serviceaccount:ns:one": "system:serviceaccount:ns:one",
		"controller":                   "user controller", // not the key controller
		"new\nline\x1b[31m":            "new?line?[31m",
		strings.Repeat("é", 200):       strings.Repeat("é", 128),
	} {
		if got := recordable(name); got != want {
			t.Errorf("%q is recorded as %q, want %q", name, got, want)
		}
	}
}
