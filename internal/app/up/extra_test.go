//go:build unix

package up

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtraArguments(t *testing.T) {
	got, err := extraArguments([]string{"controller=--a=b=c", "controller=-v", "discovery=--max-age=1m"})
	want := map[string][]string{"controller": {"--a=b=c", "-v"}, "discovery": {"--max-age=1m"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, arguments (-want +got):\n%s", err, diff)
	}
	for text, complaint := range map[string]string{
		"controller":      "must be COMPONENT=ARGUMENT",
		"controller=x":    "must be COMPONENT=ARGUMENT",
		"=--x":            `no component ""`,
		"conductor=--x":   "the components are devcluster, apiserver, controller, agent, binder, profiles, webhook, discovery",
		"--key-leeway=1s": "must be COMPONENT=ARGUMENT",
	} {
		if _, err := extraArguments([]string{text}); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: %v, want %q", text, err, complaint)
		}
	}
}
