package execcredential_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
)

type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// A failure that no caller gets is logged, once, and without a secret.
func TestLog(t *testing.T) {
	var out buffer
	runs := make(chan execcredential.Run, 10)
	source, script, clock := scripted(t, execcredential.Options{
		RefreshAhead: 10 * time.Minute,
		Logger:       slog.New(slog.NewTextHandler(&out, nil)),
		OnRun:        func(r execcredential.Run) { runs <- r },
	}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		switch run {
		case 1, 2:
			return execcredential.Material{Token: "s3cr3t", Expires: start.Add(-time.Hour)}, nil
		case 3:
			return execcredential.Material{Token: "s3cr3t", Expires: clock.Now().Add(time.Hour)}, nil
		default:
			return execcredential.Material{}, errors.New("no network")
		}
	}
	for range 3 {
		need(source.Refresh(t.Context()))(t)
		<-runs
	}
	clock.Advance(55 * time.Minute)
	credential := need(source.Get(t.Context()))(t)
	if r := <-runs; r.Reason != execcredential.Ahead {
		t.Errorf("run %+v", r)
	}
	clock.Advance(time.Second)
	if _, err := source.Rejected(t.Context(), credential); err == nil {
		t.Error("no error")
	}
	if r := <-runs; r.Reason != execcredential.Rejected {
		t.Errorf("run %+v", r)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "expired already") || !strings.Contains(lines[1], "reason=Ahead") || !strings.Contains(lines[2], "reason=Rejected") || strings.Contains(out.String(), "s3cr3t") {
		t.Errorf("logged:\n%s", out.String())
	}
}
