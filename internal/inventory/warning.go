package inventory

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// Warning is the newest Event of kind Warning on an object.
type Warning struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`

	secret string // namespace/name of the one Secret that the Event on an identity is about; empty: about none in particular
}

// Newer returns the later of a warning, or nil, and an Event.
func Newer(kept *Warning, event *corev1.Event) *Warning {
	at := happened(event)
	if kept != nil && !at.After(kept.Time) {
		return kept
	}
	return &Warning{Time: at.UTC(), Reason: event.Reason, Message: wording.Redact(event.Message), secret: SecretOf(event)}
}

// SecretOf returns the Secret that an Event on a WorkloadIdentity is about, with which the agent begins the message.
func SecretOf(event *corev1.Event) string {
	if event.InvolvedObject.Kind != "WorkloadIdentity" {
		return ""
	}
	rest, about := strings.CutPrefix(event.Message, "Secret ")
	name, _, cut := strings.Cut(rest, ": ")
	if !about || !cut || strings.Count(name, "/") != 1 || strings.ContainsAny(name, " \n") {
		return ""
	}
	return name
}

// about reports whether a warning of an identity concerns one of its Secrets.
func (w *Warning) about(d *Delivery) bool {
	return w.secret == "" || w.secret == d.Namespace+"/"+d.Secret
}

// ConcernsIdentity reports whether an Event on a service account is about one of its identities, or the Secret for it.
func ConcernsIdentity(event *corev1.Event, identity types.NamespacedName, secret string) bool {
	return mentions(event.Message, "WorkloadIdentity "+identity.String()) || mentions(event.Message, secret)
}

// FailsIdentity reports whether an Event on a service account is about a delivery of an identity that fails: it names it, or none at all and
// the account has no other. An identity that was taken off the account is no failure.
func FailsIdentity(event *corev1.Event, identity types.NamespacedName, secret string, only bool) bool {
	if event.Reason == "IdentityReleased" {
		return false
	}
	namesOne := strings.Contains(event.Message, "WorkloadIdentity "+identity.Namespace+"/") || strings.Contains(event.Message, tokensecret.NamePrefix)
	return only && !namesOne || ConcernsIdentity(event, identity, secret)
}

// mentions reports whether a text has a name in it that is not a part of a longer one.
func mentions(text, name string) bool {
	const inNames = "abcdefghijklmnopqrstuvwxyz0123456789-/"
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return false
		}
		longer := before != "" && strings.ContainsAny(before[len(before)-1:], inNames+".") || after != "" && strings.ContainsAny(after[:1], inNames)
		if len(after) > 1 && after[0] == '.' {
			longer = longer || strings.ContainsAny(after[1:2], inNames)
		}
		if !longer {
			return true
		}
		text = after
	}
}
