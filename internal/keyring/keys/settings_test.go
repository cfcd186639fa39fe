package keys

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

func TestSettingsHaveDefaults(t *testing.T) {
	want := Settings{
		RotationPeriod: 720 * time.Hour, PublishPeriod: 24 * time.Hour, MaxAge: time.Hour, MaxLifetime: 48 * time.Hour,
		Leeway: 210 * time.Second, Staleness: time.Minute, ClockSkew: 2 * time.Hour,
	}
	got := testkit.Need(Settings{}.Complete())(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got.Wait() != 28*time.Hour+time.Minute || got.Retention() != 54*time.Hour+4*time.Minute+30*time.Second {
		t.Errorf("a key waits for %s and stays for %s, want 28h1m and 54h4m30s", got.Wait(), got.Retention())
	}
}

func TestSettingsThatContradict(t *testing.T) {
	cases := map[string]struct {
		settings Settings
		want     string
	}{
		"defaults":                            {Settings{}, ""},
		"the shortest period":                 {Settings{RotationPeriod: 28*time.Hour + time.Minute}, ""},
		"negative":                            {Settings{Leeway: -time.Second}, "leeway -1s is negative"},
		"negative period":                     {Settings{RotationPeriod: -time.Hour}, "rotation period -1h0m0s is negative"},
		"parts of seconds":                    {Settings{Staleness: 1500 * time.Millisecond}, "staleness 1.5s must be whole seconds"},
		"centuries":                           {Settings{MaxLifetime: 1 << 62 / time.Second * time.Second}, "maximum token lifetime"},
		"period shorter than the publication": {Settings{RotationPeriod: 28 * time.Hour}, "rotation period 28h0m0s is shorter than the 28h1m0s"},
		"publication shorter than max-age":    {Settings{PublishPeriod: 59 * time.Minute}, "publish period 59m0s is shorter than the max-age 1h0m0s"},
		"longer tokens than periods":          {Settings{RotationPeriod: 48 * time.Hour, MaxLifetime: 96 * time.Hour}, "5 keys"},
		"retention of just two periods":       {Settings{RotationPeriod: 48 * time.Hour, MaxLifetime: 96*time.Hour - 6*time.Hour - 270*time.Second}, "5 keys"},
		"retention of less than two":          {Settings{RotationPeriod: 48 * time.Hour, MaxLifetime: 96*time.Hour - 6*time.Hour - 271*time.Second}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.settings.Complete()
			if c.want == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTermsSayHowOldARingMaySign(t *testing.T) {
	terms := Terms{Staleness: time.Minute}
	cases := map[string]struct {
		monotonic, wall time.Duration
		want            bool
	}{
		"just read":              {0, 0, true},
		"at the bound":           {time.Minute, time.Minute, true},
		"too old":                {time.Minute + 1, time.Minute + 1, false},
		"the machine was asleep": {time.Second, time.Hour, false},
		"clock set back":         {time.Hour, time.Second, false},
		"clock set far back":     {time.Second, -time.Hour, false},
		"clock set forward":      {time.Second, 2 * time.Hour, false},
	}
	for name, c := range cases {
		if got := terms.maySign(c.monotonic, c.wall); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	read := epoch
	if !(Terms{}).MaySign(read, read.Add(DefaultStaleness)) || (Terms{}).MaySign(read, read.Add(DefaultStaleness+1)) {
		t.Error("terms that are not set do not stand for the default staleness")
	}
	if terms.MaySign(read.Add(time.Second), read) {
		t.Error("a ring that was read in the future signs")
	}
}
