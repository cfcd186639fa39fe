package keys

import (
	"cmp"
	"fmt"
	"time"
)

// The defaults of Settings.
const (
	DefaultRotationPeriod = 30 * 24 * time.Hour
	DefaultPublishPeriod  = 24 * time.Hour
	DefaultMaxAge         = time.Hour
	DefaultMaxLifetime    = 48 * time.Hour
	DefaultLeeway         = 210 * time.Second
	DefaultStaleness      = time.Minute
	DefaultClockSkew      = 2 * time.Hour
)

// longestSetting keeps sums of settings far from the end of time.Duration.
const longestSetting = 10 * 366 * 24 * time.Hour

// Settings set when keys change. The zero value of each stands for its default; all are whole seconds.
type Settings struct {
	// RotationPeriod is how long a key signs.
	RotationPeriod time.Duration
	// PublishPeriod is how long relying parties may take to notice a new key: a key is published for that long before it
	// signs. It covers the relying party that refetches least often.
	PublishPeriod time.Duration
	// MaxAge bounds the max-age with which the documents are served.
	MaxAge time.Duration
	// MaxLifetime is the longest lifetime of a token.
	MaxLifetime time.Duration
	// Leeway is how long after its expiry relying parties may accept a token; the default is that of Vault (150s) and one
	// minute for clocks.
	Leeway time.Duration
	// Staleness is how old the snapshot of the ring may be with which a replica signs or publishes.
	Staleness time.Duration
	// ClockSkew is how far the clock of the controller or of a replica may at any time be from the true time, to either
	// side. It makes every wait longer, so that no jump of a clock makes one too short.
	ClockSkew time.Duration
}

// Complete returns s with unset fields filled in, or an error that names the settings that contradict each other.
func (s Settings) Complete() (Settings, error) {
	s = s.withDefaults()
	for _, field := range []struct {
		name  string
		value time.Duration
	}{
		{"rotation period", s.RotationPeriod}, {"publish period", s.PublishPeriod}, {"max-age", s.MaxAge},
		{"maximum token lifetime", s.MaxLifetime}, {"leeway", s.Leeway}, {"staleness", s.Staleness}, {"clock skew", s.ClockSkew},
	} {
		switch {
		case field.value < 0:
			return s, fmt.Errorf("%s %s is negative", field.name, field.value)
		case field.value%time.Second != 0:
			return s, fmt.Errorf("%s %s must be whole seconds", field.name, field.value)
		case field.value > longestSetting:
			return s, fmt.Errorf("%s %s is longer than %s", field.name, field.value, longestSetting)
		}
	}
	switch {
	case s.PublishPeriod < s.MaxAge:
		return s, fmt.Errorf("publish period %s is shorter than the max-age %s: relying parties would refuse tokens of a new key until they fetch the keys again",
			s.PublishPeriod, s.MaxAge)
	case s.Wait() > s.RotationPeriod:
		return s, fmt.Errorf("rotation period %s is shorter than the %s for which a key is published before it signs (publish period %s, staleness %s, twice the clock skew %s)",
			s.RotationPeriod, s.Wait(), s.PublishPeriod, s.Staleness, s.ClockSkew)
	}
	// At each rotation of one algorithm there are the active key, the spare, and all that retired within the retention.
	if retiring := int64(s.Retention()/s.RotationPeriod) + 1; retiring+2 > MaxPerAlgorithm {
		return s, fmt.Errorf("rotation period %s is too short for keys that stay published for %s after they have signed (maximum token lifetime %s, leeway %s, staleness %s, three times the clock skew %s): "+
			"%d keys of each of %d algorithms would be published at once, at most %d in all are allowed",
			s.RotationPeriod, s.Retention(), s.MaxLifetime, s.Leeway, s.Staleness, s.ClockSkew, retiring+2, len(Algorithms()), MaxPublished)
	}
	return s, nil
}

// Wait is how long a key is published before it signs, by the clock of the controller. It is longer than PublishPeriod
// since documents may follow the ring late, and the clock may have been ahead when it is read and behind when PublishedAt
// was.
func (s Settings) Wait() time.Duration { return s.PublishPeriod + s.Staleness + 2*s.ClockSkew }

// Retention is how long a key stays published after it has signed, by the clock of the controller.
func (s Settings) Retention() time.Duration {
	return s.expiryBound(s.terms()) + s.Leeway + s.ClockSkew
}

// expiryBound is how long after a clock of the controller, read when a key was seen retired, a token of the key can expire:
// that clock may be behind and that of a replica ahead.
func (s Settings) expiryBound(t Terms) time.Duration {
	t = t.complete()
	return t.Staleness + t.MaxLifetime + 2*s.ClockSkew
}

func (s Settings) terms() Terms { return Terms{MaxLifetime: s.MaxLifetime, Staleness: s.Staleness} }

func (s Settings) withDefaults() Settings {
	return Settings{
		RotationPeriod: cmp.Or(s.RotationPeriod, DefaultRotationPeriod),
		PublishPeriod:  cmp.Or(s.PublishPeriod, DefaultPublishPeriod),
		MaxAge:         cmp.Or(s.MaxAge, DefaultMaxAge),
		MaxLifetime:    cmp.Or(s.MaxLifetime, DefaultMaxLifetime),
		Leeway:         cmp.Or(s.Leeway, DefaultLeeway),
		Staleness:      cmp.Or(s.Staleness, DefaultStaleness),
		ClockSkew:      cmp.Or(s.ClockSkew, DefaultClockSkew),
	}
}
