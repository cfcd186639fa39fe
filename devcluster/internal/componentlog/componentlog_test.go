package componentlog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/credence-id/credence/devcluster/internal/quiet"
)

func TestKeepsWhatAsksForAction(t *testing.T) {
	const (
		skipped = "W1120 18:07:09.261108   28860 genericapiserver.go:798] Skipping API authentication.k8s.io/v1beta1 because it has no resources.\n"
		info    = "I1120 18:07:09.261108   28860 server.go:150] Version: v1.36.3\n"
		warning = "W1120 18:07:09.261108   28860 dispatcher.go:210] Failed calling webhook, failing open\n"
		failure = "E1120 18:07:09.261108   28860 controller.go:156] Info about an error\n"
	)
	var out bytes.Buffer
	stopping := make(chan struct{})
	log := logFilter{to: quiet.Writer{To: &out, Routine: routine()}, stopping: stopping}
	for _, entry := range []string{skipped, info, warning, failure} {
		if n, err := fmt.Fprint(log, entry); n != len(entry) || err != nil {
			t.Errorf("write of %q: %d, %v; want all of it", entry, n, err)
		}
	}
	close(stopping)
	if n, err := fmt.Fprint(log, failure); n != len(failure) || err != nil {
		t.Errorf("write while stopping: %d, %v; want all of it", n, err)
	}
	if got, want := out.String(), warning+failure; got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}
