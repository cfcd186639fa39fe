// Package report describes a ring of keys in the words of the API: the status of a KeyRing and the answers to
// rotations and revocations. In go rings, plans and exposures, out come values of api/identity/v1alpha1. It
// decides nothing and never sees more of a key than its name.
package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Observation is what a status is made of.
type Observation struct {
	Issuer identity.Issuer
	Ring   keys.Ring
	View   keys.View
	Plan   keys.Plan
	// Generation is that of the spec from which the View's gates were made.
	Generation int64
	// Documents describes the published documents; nil if they are not watched.
	Documents *v1alpha1.PublishedDocuments
	// RelyingParties are those of the spec.
	RelyingParties []v1alpha1.RelyingParty
	// Before are the conditions of the last status: the time of a transition is kept while nothing changes.
	Before []metav1.Condition
}

// Status describes an observation. Two observations between which nothing changed give equal statuses, whatever the time.
func Status(o Observation) v1alpha1.KeyRingStatus {
	settings := Settings(o.View.Settings)
	status := v1alpha1.KeyRingStatus{
		ObservedGeneration: o.Generation,
		Issuer:             string(o.Issuer),
		Revision:           o.Ring.Revision,
		Settings:           &settings,
		Keys:               Keys(o.Ring, o.View.Settings),
		NextChange:         moment(o.Plan.NextChange),
		Signing:            signing(o.Ring),
		Documents:          o.Documents,
	}
	for _, action := range o.Plan.Actions {
		if action.Kind == keys.Confirm || action.Kind == keys.Extend {
			continue // done as soon as it is seen
		}
		status.Next = append(status.Next, v1alpha1.PlannedChange{
			Change: title(string(action.Kind)), Algorithm: string(action.Algorithm), Key: string(action.Key),
			Time: metav1.NewTime(action.At), Awaits: action.Awaits,
		})
	}
	for _, request := range o.Ring.Requests {
		status.Requests = append(status.Requests, v1alpha1.RequestedRotation{
			Algorithm: string(request.Algorithm), Time: metav1.NewTime(request.At), By: request.By, Reason: request.Reason,
		})
	}
	for _, gone := range o.Ring.Compromised {
		status.Revoked = append(status.Revoked, revoked(gone))
	}
	status.History = Events(o.Ring.History)
	for _, party := range o.RelyingParties {
		status.RelyingParties = append(status.RelyingParties, v1alpha1.RelyingPartyStatus{Name: party.Name, MissingKeys: missing(o.Ring, party)})
	}
	status.Conditions = conditions(o)
	return status
}

// Keys describes the published keys, in the order in which they are published.
func Keys(ring keys.Ring, settings keys.Settings) []v1alpha1.KeyStatus {
	var all []v1alpha1.KeyStatus
	for _, published := range ring.Published() {
		key := ring.Keys[slices.IndexFunc(ring.Keys, func(k keys.Key) bool { return k.ID == published.ID })]
		described := v1alpha1.KeyStatus{
			ID: string(key.ID), Algorithm: string(key.Algorithm), State: string(key.State),
			PublishedAt: moment(key.PublishedAt), SignsSince: moment(key.ActivatedAt), RetiredAt: moment(key.RetiredAt),
			LastExpiry: moment(key.LastExpiry),
		}
		switch key.State {
		case keys.Spare:
			described.ReadyAt = moment(key.ReadyAt(settings))
		case keys.Retiring:
			described.RemovableAt = moment(key.RemovableAt(settings))
		}
		all = append(all, described)
	}
	return all
}

// Events describes the events of keys.
func Events(history []keys.Event) []v1alpha1.KeyEvent {
	var all []v1alpha1.KeyEvent
	for _, event := range history {
		all = append(all, v1alpha1.KeyEvent{
			Time: metav1.NewTime(event.At), Event: string(event.Kind), Algorithm: string(event.Algorithm), Key: string(event.Key),
			AcceptRefusals: event.AcceptRefusals, By: event.By, Reason: event.Reason,
		})
	}
	return all
}

// Exposures describes for how long relying parties act on keys that are not those of the ring.
func Exposures(all []keys.Exposure) []v1alpha1.Exposure {
	var described []v1alpha1.Exposure
	for _, e := range all {
		described = append(described, v1alpha1.Exposure{
			Model: e.Model, Parties: e.Parties, Duration: metav1.Duration{Duration: e.For.Round(time.Second)}, Unbounded: e.Unbounded,
		})
	}
	return described
}

// missing are the published keys that a relying party has not been given.
func missing(ring keys.Ring, party v1alpha1.RelyingParty) []string {
	var ids []string
	for _, key := range ring.Published() {
		if !slices.Contains(party.KnownKeys, string(key.ID)) {
			ids = append(ids, string(key.ID))
		}
	}
	return ids
}

func signing(ring keys.Ring) string {
	var all []string
	for _, algorithm := range keys.Algorithms() {
		id := "none"
		if key, ok := ring.Signer(algorithm); ok {
			id = Short(string(key.ID))
		}
		all = append(all, string(algorithm)+"="+id)
	}
	return strings.Join(all, " ")
}

// Short is the start of a key's ID, long enough to distinguish the keys of a ring by eye.
func Short(id string) string { return id[:min(len(id), 8)] }

func moment(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Gates are the relying parties of a spec as gates.
func Gates(parties []v1alpha1.RelyingParty) []keys.Gate {
	var gates []keys.Gate
	for _, party := range parties {
		gate := keys.Gate{Name: party.Name}
		for _, id := range party.KnownKeys {
			gate.Knows = append(gate.Knows, identity.KeyID(id))
		}
		gates = append(gates, gate)
	}
	slices.SortFunc(gates, func(a, b keys.Gate) int { return cmp.Compare(a.Name, b.Name) })
	return gates
}
