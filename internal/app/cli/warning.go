package cli

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eventWarning is the newest Event of kind Warning on an object.
type eventWarning struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`

	secret string // namespace/name of the one Secret that the Event on an identity is about; empty: about none in particular
}

// newer returns the later of a warning, or nil, and an Event.
func newer(kept *eventWarning, event *corev1.Event) *eventWarning {
	at := happened(event)
	if kept != nil && !at.After(kept.Time) {
		return kept
	}
	return &eventWarning{Time: at.UTC(), Reason: event.Reason, Message: looksLikeToken.ReplaceAllString(event.Message, "[redacted]"), secret: secretOf(event)}
}

// secretOf returns the Secret that an Event on a WorkloadIdentity is about, with which the agent begins the message.
func secretOf(event *corev1.Event) string {
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
func (w *eventWarning) about(d *delivery) bool {
	return w.secret == "" || w.secret == d.Namespace+"/"+d.Secret
}

// concernsIdentity reports whether an Event on a service account is about one of its identities, or the Secret for it.
func concernsIdentity(event *corev1.Event, identity types.NamespacedName, secret string) bool {
	return mentions(event.Message, "WorkloadIdentity "+identity.String()) || mentions(event.Message, secret)
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

// line is a warning on one line, with its time in full.
func (w *eventWarning) line() string {
	return w.Time.Format(time.RFC3339) + " " + oneLine(w.Reason+": "+w.Message)
}
