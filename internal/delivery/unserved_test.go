package delivery

import (
	"strings"
	"testing"
)

// The binder takes a moment: only an account that waits for longer is told of it, and nothing is written meanwhile.
func TestAccountInANamespaceWithoutABinding(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.unserved = "ns"
	for try := 1; try <= patience; try++ {
		wait := w.lookAtAccount()
		if wait <= 0 {
			t.Fatalf("try %d: not looked at again", try)
		}
		event := w.event()
		if told := strings.Contains(event, "NamespaceNotBound") && strings.Contains(event, "credence-server binder"); told != (try == patience) {
			t.Errorf("try %d: the Event is %q", try, event)
		}
		w.pass(wait)
	}
	if names := w.secretNames(); len(names) > 0 {
		t.Errorf("Secrets %v were created", names)
	}
	w.unserved = ""
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 1 {
		t.Errorf("once it is served there are Secrets %v", names)
	}
}
