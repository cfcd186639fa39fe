package webhook

import (
	"testing"
	"time"
)

func TestTimeout(t *testing.T) {
	for parameter, want := range map[string]time.Duration{
		"10s": 9500 * time.Millisecond, "1s": 900 * time.Millisecond, "5m": 29500 * time.Millisecond,
		"": 9500 * time.Millisecond, "-1s": 9500 * time.Millisecond, "soon": 9500 * time.Millisecond,
	} {
		if got := timeout(parameter); got != want {
			t.Errorf("timeout=%s: %s, want %s", parameter, got, want)
		}
	}
}
