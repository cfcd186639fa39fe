package credential

import (
	"maps"
	"time"
)

// until is when a credential that was got because of r may be replaced for the same reason.
func (r Refusals) until() time.Time { return r.At.Add(r.pause()) }

// over reports whether the last credential was served for so long after its pause that the server must have taken it.
func (r Refusals) over(now time.Time) bool { return !now.Before(r.At.Add(2 * r.pause())) }

// pause is how long a credential is served whatever is thought of it, after so many refusals in a row.
func (r Refusals) pause() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return doubled(firstRefusalPause, 2*(r.Count-1), longestRefusalPause)
}

// refusedBy returns the refusals of e and one more, by cluster.
func (e *Entry) refusedBy(cluster string, now time.Time) map[string]Refusals {
	refusals := maps.Clone(e.Refusals)
	maps.DeleteFunc(refusals, func(_ string, r Refusals) bool { return r.over(now) })
	return withRefusals(refusals, cluster, Refusals{Count: refusals[cluster].Count + 1, At: now})
}

func withRefusals(all map[string]Refusals, cluster string, r Refusals) map[string]Refusals {
	if all == nil {
		all = map[string]Refusals{}
	}
	all[cluster] = r
	return all
}
