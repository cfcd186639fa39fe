package quotas

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

const (
	// maxEntries bounds a ledger, which is one record of the storage.
	maxEntries = 4000
	// maxReservations bounds the writes of one object that are not settled yet.
	maxReservations = 32
	// reserved is for how long a write is waited for: longer than the API server lets a request take, which is a minute by default.
	reserved = 90 * time.Second
)

// entry is what one object counts for.
type entry struct {
	// UID is that of the object as it was last seen in the storage of its API; empty if it was not. Then there are reservations.
	UID types.UID `json:"uid,omitempty"`
	// Amounts are what it used then, and Fault is why that is not known.
	Amounts contextkind.Amounts `json:"amounts,omitempty"`
	Fault   string              `json:"fault,omitempty"`
	// Reservations are writes that were let through, and may not be stored yet.
	Reservations []reservation `json:"reservations,omitempty"`
	// Last is the request that was reserved for last. With the same amounts as before, an entry may be of a later write.
	Last types.UID `json:"last,omitempty"`
}

// reservation is for one write.
type reservation struct {
	// Request is the uid of the admission request.
	Request types.UID `json:"request"`
	// UID is that of the object after the write.
	UID types.UID `json:"uid,omitempty"`
	// Replaces is the version of the object that the write replaces; empty for a new object. The API server stores it over no other version.
	Replaces string              `json:"replaces,omitempty"`
	Amounts  contextkind.Amounts `json:"amounts"`
	// Until is when the write has failed, unless it is stored by then.
	Until metav1.Time `json:"until"`
}

// observation is an object as the storage of its API has it. Without a uid it does not exist.
type observation struct {
	uid     types.UID
	version string
	// counts is whether the object names a binding that lists the Quota.
	counts  bool
	amounts contextkind.Amounts
	fault   string
}

// settled reports whether a write is stored, or cannot be any more, once an object was observed after the write was let through. A new object
// that has ended was stored: it is created once.
func (r reservation) settled(found observation, ended func(types.UID) bool) bool {
	if r.Replaces == "" {
		return r.UID != "" && (r.UID == found.uid || ended(r.UID))
	}
	return r.UID != found.uid || r.Replaces != found.version
}

// after is an entry once its object was observed: not before began.
func (e entry) after(found observation, began time.Time, ended func(types.UID) bool) entry {
	next := entry{Last: e.Last}
	if found.uid != "" && found.counts {
		next.UID, next.Amounts, next.Fault = found.uid, found.amounts, found.fault
	}
	for _, each := range e.Reservations {
		if !each.settled(found, ended) && began.Before(each.Until.Time) {
			next.Reservations = append(next.Reservations, each)
		}
	}
	return next
}

func (e entry) empty() bool { return e.UID == "" && len(e.Reservations) == 0 }

// same reports whether two entries count for the same.
func (e entry) same(other entry) bool {
	e.Last, other.Last = "", ""
	return equality.Semantic.DeepEqual(e, other)
}

// charge is the most that an object can use of something, whichever of its writes are stored; false if that is not known.
func (e entry) charge(name string) (resource.Quantity, bool) {
	var most resource.Quantity
	all := make([]contextkind.Amounts, 0, 1+len(e.Reservations))
	if e.UID != "" {
		all = append(all, e.Amounts)
	}
	for _, each := range e.Reservations {
		all = append(all, each.Amounts)
	}
	for _, amounts := range all {
		amount, known := amounts[name]
		if !known || e.Fault != "" {
			return most, false
		}
		if amount.Cmp(most) > 0 {
			most = amount.DeepCopy()
		}
	}
	return most, true
}

// reserve adds a reservation to the entry of an object, or returns why it would exceed a limit. Only the names that grow are compared.
func reserve(entries map[string]entry, key string, r reservation, limits contextkind.Amounts, grows func(name string) bool) (map[string]entry, string) {
	var refusals []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if !grows(name) {
			continue
		}
		limit, amount := limits[name], r.Amounts[name]
		var others, open resource.Quantity
		var until time.Time
		var unknown []string
		for other, each := range entries {
			if other == key {
				continue
			}
			charge, known := each.charge(name)
			if !known {
				unknown = append(unknown, other)
			}
			others.Add(charge)
			for _, r := range each.Reservations {
				if r.Until.After(until) {
					until = r.Until.Time
				}
			}
			charge.Sub(each.Amounts[name])
			open.Add(charge)
		}
		if len(unknown) > 0 {
			refusals = append(refusals, fmt.Sprintf("how much %s %d other objects use is not known: %s", name, len(unknown), faultOf(entries, key, unknown, name)))
			continue
		}
		total := others.DeepCopy()
		total.Add(amount)
		if total.Cmp(limit) > 0 {
			for _, shown := range []*resource.Quantity{&amount, &others, &open, &total} {
				shown.Format = limit.Format
			}
			refusal := fmt.Sprintf("%s: the object needs %s, others use %s, together %s of %s", name, amount.String(), others.String(), total.String(), limit.String())
			if open.Sign() > 0 {
				refusal += fmt.Sprintf(" (%s of that for writes that may not be stored: if they are not, it is free at %s)", open.String(), until.UTC().Format(time.RFC3339))
			}
			refusals = append(refusals, refusal)
		}
	}
	if len(refusals) > 0 {
		return nil, strings.Join(refusals, "; ")
	}
	own := entries[key]
	if len(own.Reservations) >= maxReservations {
		return nil, fmt.Sprintf("%d writes of the object are not stored yet: try again in a minute", len(own.Reservations))
	}
	if _, known := entries[key]; !known && len(entries) >= maxEntries {
		return nil, fmt.Sprintf("it counts %d objects, and a Quota can count no more: use several", len(entries))
	}
	next := maps.Clone(entries)
	if next == nil {
		next = map[string]entry{}
	}
	own.Reservations, own.Last = append(slices.Clone(own.Reservations), r), r.Request
	next[key] = own
	return next, ""
}

// faultOf is why it is not known how much of something one of the others uses. It names one of the namespace of the object: users who write that may
// not learn which objects others have.
func faultOf(entries map[string]entry, key string, others []string, name string) string {
	slices.Sort(others)
	chosen, about := others[0], ""
	if i := slices.IndexFunc(others, func(other string) bool { return namespaceOf(other) == namespaceOf(key) }); i >= 0 {
		chosen = others[i]
		about = strings.Replace(chosen, "/", " ", 1) + ": "
	}
	resource, _, _ := strings.Cut(chosen, "/")
	return about + cmp.Or(entries[chosen].Fault, "spec.usage of ContextKind "+resource+" returned no "+name)
}

// released is an entry without the reservation of a request.
func (e entry) released(request types.UID) entry {
	e.Reservations = slices.DeleteFunc(slices.Clone(e.Reservations), func(r reservation) bool { return r.Request == request })
	return e
}
