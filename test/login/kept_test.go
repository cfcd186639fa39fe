package login_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// kept is what credence credential status prints of the one credential that is kept.
type kept struct {
	State             string
	Obtained, Expires time.Time
	Renewable         bool
	LastFailure       struct{ Class string }
}

func (d *workstation) kept() kept {
	d.t.Helper()
	var status struct{ Credentials []kept }
	text := d.must("credence", "credential", "status", "-o", "json")
	if err := json.Unmarshal([]byte(text), &status); err != nil || len(status.Credentials) != 1 {
		d.t.Fatalf("credence credential status: %v\n%s", err, text)
	}
	return status.Credentials[0]
}

// waitUntil waits for a time that a program has named.
func waitUntil(t *testing.T, when time.Time) {
	t.Helper()
	waitFor(t, func() error {
		if left := time.Until(when); left > 0 {
			return fmt.Errorf("it is %s too early", left)
		}
		return nil
	})
}

// age makes what is kept older, as if so much time had passed since it was got.
func (d *workstation) age(by time.Duration) {
	d.t.Helper()
	files := testkit.Need(filepath.Glob(filepath.Join(d.home, "cache", "credence", "credentials", "*")))(d.t)
	aged := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			d.t.Fatal(err)
		}
		// The first line ends with the digest of the rest.
		first, body, _ := bytes.Cut(content, []byte("\n"))
		heading, _, isEntry := bytes.Cut(first, []byte("sha256:"))
		if !isEntry {
			continue
		}
		var entry map[string]any
		testkit.Must(d.t, json.Unmarshal(body, &entry))
		for _, field := range []string{"obtained", "expires"} {
			at := testkit.Need(time.Parse(time.RFC3339, entry[field].(string)))(d.t)
			entry[field] = at.Add(-by).Format(time.RFC3339Nano)
		}
		if body, err = json.Marshal(entry); err != nil {
			d.t.Fatal(err)
		}
		testkit.Must(d.t, os.WriteFile(file, fmt.Appendf(nil, "%ssha256:%x\n%s", heading, sha256.Sum256(body), body), 0o600))
		aged++
	}
	if aged != 1 {
		d.t.Fatalf("%d credentials are kept, want 1", aged)
	}
}
