package credentialspecs_test

import (
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// State without a watch expires: an object that was deleted meanwhile must not be served for ever.
func TestWhatIsKnownIsNotOlderThanTheWatch(t *testing.T) {
	a := &api{objects: map[string]string{"webapp1": `{"a":"1"}`}, events: make(chan string)}
	f := follow(t, a)
	testkit.Eventually(t, "it never got ready", func() bool { return f.Ready() == nil })
	a.tell("MODIFIED", object("webapp1", `{"a":"2"}`)) // the watch goes on
	a.mu.Lock()
	a.code, a.objects = 403, nil // the right to list has gone, and then the object
	a.mu.Unlock()
	a.tell("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	testkit.Eventually(t, "the missing watch is not noticed", func() bool { return f.Unwatched() > 0 })
	if _, known := f.Known("webapp1"); !known {
		t.Error("forgotten at once: every API server restarts now and then")
	}
	a.later.Store(int64(11 * time.Second))
	testkit.Eventually(t, "it went on with expired state", func() bool { _, known := f.Known("webapp1"); return !known })
	a.mu.Lock()
	a.code, a.objects = 0, map[string]string{"webapp1": `{"a":"3"}`}
	a.mu.Unlock()
	testkit.Eventually(t, "it does not know what is watched again", func() bool { spec, _ := f.Known("webapp1"); return spec.Contents == `{"a":"3"}` })
}
