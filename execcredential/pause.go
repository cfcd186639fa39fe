package execcredential

import "time"

const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = time.Minute

	// Between two runs that succeed is a pause too, which doubles as long as they follow each other closely. It bounds how often a
	// program runs that writes credentials which have expired already, and is nothing that others notice.
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
	// manyRuns is how many runs that follow each other closely are counted.
	manyRuns = 10
)

// pause limits when a program may run again.
type pause struct {
	failures int // in a row
	close    int // successes that follow each other closely
	ended    time.Time
	until    time.Time
}

// failed doubles the pause with every failure, up to a minute; random, in [0, 1), takes up to half of it off, so that many processes
// don't come back at once.
func (p *pause) failed(now time.Time, random float64) {
	p.failures++
	wait := lastBackoff
	if shift := p.failures - 1; shift < 10 {
		wait = min(firstBackoff<<shift, lastBackoff)
	}
	p.until = now.Add(wait - time.Duration(random*float64(wait)/2))
}

func (p *pause) succeeded(now time.Time) {
	if p.ended.IsZero() || now.Sub(p.ended) > 2*lastPause {
		p.close = 0
	} else if p.close < manyRuns {
		p.close++
	}
	p.failures, p.ended, p.until = 0, now, now.Add(min(firstPause<<p.close, lastPause))
}

// failing reports whether the last failure counts at the time now.
func (p *pause) failing(now time.Time) bool {
	return p.failures > 0 && now.Before(p.until)
}

// crowded reports whether so many runs have succeeded one closely after the other that the next one has to wait until the pause is over.
func (p *pause) crowded(now time.Time) bool {
	return p.close == manyRuns && now.Before(p.until)
}
