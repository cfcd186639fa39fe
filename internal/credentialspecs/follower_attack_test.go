package credentialspecs_test

import (
	"strings"
	"testing"
)

// What the watch no longer vouches for is not known: an object that was deleted meanwhile must not be given out for ever.
func TestWhatIsKnownIsNotOlderThanTheWatch(t *testing.T) {
	a := &api{objects: map[string]string{"webapp1": `{"a":"1"}`}, events: make(chan string)}
	f := follow(t, a)
	await(t, "it never got ready", func() bool { return f.Ready() == nil })
	a.tell("MODIFIED", object("webapp1", `{"a":"2"}`)) // the watch goes on
	a.mu.Lock()
	a.code, a.objects = 403, nil // the right to list has gone, and then the object
	a.mu.Unlock()
	a.tell("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	await(t, "it went on knowing what nobody vouches for", func() bool { _, known := f.Known("webapp1"); return !known })
	if err := f.Ready(); err != nil && !strings.Contains(err.Error(), "can't be listed") {
		t.Error(err)
	}
}
