package apiserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/credence-id/credence/test/testkit"
)

// No header, method or address of a caller makes an event large.
func TestEventsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	event := boundEvent(auditinternal.Event{
		AuditID: types.UID(long), Verb: long, RequestURI: long, UserAgent: long,
		SourceIPs: append(slices.Repeat([]string{"192.0.2.1"}, 100_000), "192.0.2.2"),
	})
	text := testkit.Need(json.Marshal(event))(t)
	if len(text) > 8<<10 {
		t.Errorf("an event of %d bytes", len(text))
	}
	if last := event.SourceIPs[len(event.SourceIPs)-1]; last != "192.0.2.2" {
		t.Errorf("the last address is %s, want that of the connection", last)
	}
}
