package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestAuditCountsOneUser(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "devcluster", "audit.log")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	event := func(user, verb, resource, stage string) string {
		return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q}}`+"\n", stage, verb, user, resource)
	}
	const done = "ResponseComplete"
	review := event("w", "create", "subjectaccessreviews", done)
	write(review)
	a, err := followAudit(plane{dir: dir}, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { a.close() }()
	want := func(want calls) {
		t.Helper()
		if got, err := a.since(); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	want(calls{}) // what was before does not count
	write(review + event("w", "get", "gmsacredentialspecs", done) + event("other", "get", "pods", done) +
		event("w", "watch", "gmsacredentialspecs", done) + event("w", "get", "pods", "ResponseStarted") + review[:20])
	want(calls{reviews: 1, others: 1})
	write(review[20:])
	want(calls{reviews: 1})
	write(review)
	if err := os.Rename(path, path+"-1"); err != nil {
		t.Fatal(err)
	}
	write(review + review)
	want(calls{reviews: 3})
	write(`no event, "username":"w"` + "\n")
	if got, err := a.since(); err == nil {
		t.Errorf("%+v of a line that is not an event", got)
	}
}
