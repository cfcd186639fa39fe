package identity

import (
	"cmp"
	"fmt"
	"time"
)

// ShortestLifetime is the lower bound of every token's lifetime; a shorter one would be renewed more often than relying
// parties and clocks allow for.
const ShortestLifetime = 10 * time.Minute

// Lifetimes are the bounds of a token's lifetime. The zero value stands for 10m, 1h and 48h.
type Lifetimes struct {
	Min, Default, Max time.Duration
}

// Complete returns l with unset bounds filled in, or an error that names the bounds that contradict each other.
func (l Lifetimes) Complete() (Lifetimes, error) {
	l.Min = cmp.Or(l.Min, ShortestLifetime)
	l.Default = cmp.Or(l.Default, time.Hour)
	l.Max = cmp.Or(l.Max, 48*time.Hour)
	switch {
	case l.Min < ShortestLifetime:
		return l, fmt.Errorf("minimum token lifetime %s is shorter than %s", l.Min, ShortestLifetime)
	case l.Min%time.Second != 0 || l.Default%time.Second != 0 || l.Max%time.Second != 0:
		return l, fmt.Errorf("token lifetimes %s, %s and %s must be whole seconds", l.Min, l.Default, l.Max)
	case l.Max < l.Min:
		return l, fmt.Errorf("maximum token lifetime %s is shorter than the minimum %s", l.Max, l.Min)
	case l.Default < l.Min || l.Default > l.Max:
		return l, fmt.Errorf("default token lifetime %s is not between the minimum %s and the maximum %s", l.Default, l.Min, l.Max)
	}
	return l, nil
}

// Grant returns the lifetime of a token by the requested one (0: unset). It is shortened to Max
// where it is longer; shorter than Min is an error. Fractions of a second are dropped, as exp counts whole seconds.
func (l Lifetimes) Grant(requested time.Duration) (granted time.Duration, shortened bool, err error) {
	switch {
	case requested == 0:
		return l.Default, false, nil
	case requested < l.Min:
		return 0, false, fmt.Errorf("must not be shorter than %s", l.Min)
	case requested > l.Max:
		return l.Max, true, nil
	}
	return requested.Truncate(time.Second), false, nil
}
