package renewal

import "time"

// soon is how soon after a write a second one is odd: another writer changes the Secret as often as it is written.
const soon = 10 * time.Second

// Pace is that of writes of one kind.
type Pace struct {
	Last  time.Time
	Quick int // writes in a row that came too soon after one another
}

// Hold returns how long the next write must wait because there were too many.
func (p Pace) Hold(now time.Time, random func() float64) time.Duration {
	if p.Quick == 0 {
		return 0
	}
	return max(0, p.Last.Add(Backoff(p.Quick+1, random)).Sub(now))
}

// After is the pace with a write now.
func (p Pace) After(now time.Time) Pace {
	if !p.Last.IsZero() && now.Sub(p.Last) < soon<<min(p.Quick, 5) {
		return Pace{now, p.Quick + 1}
	}
	return Pace{Last: now}
}
