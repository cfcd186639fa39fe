package apiserver

import (
	"maps"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// maxAudited bounds the object of a request, and that of an answer, in an audit event, in bytes: an identity with everything
// that its target system takes has a quarter of it.
const maxAudited = 16 << 10

// maxAddresses bounds the addresses that an event gives as those of its caller: all but the last are what the caller sent.
const maxAddresses = 16

// truncated marks events that lack a part of what their level has, as the API machinery marks them.
const truncated = "audit.k8s.io/truncated"

// BoundAudit returns a backend that records what backend does, with a size that no caller chooses: texts are cut, objects
// that are too large are left out, and refused requests are recorded at level Metadata. Otherwise a caller with large
// bodies could drive the other events out of a log that is rotated by size.
func BoundAudit(backend audit.Backend) audit.Backend {
	if backend == nil {
		return nil
	}
	return boundBackend{backend}
}

type boundBackend struct{ audit.Backend }

// ProcessEvents implements audit.Sink.
func (b boundBackend) ProcessEvents(events ...*auditinternal.Event) bool {
	bound := make([]*auditinternal.Event, 0, len(events))
	for _, event := range events {
		bound = append(bound, boundEvent(*event))
	}
	return b.Backend.ProcessEvents(bound...)
}

// boundEvent shares with the event given what it does not change.
func boundEvent(event auditinternal.Event) *auditinternal.Event {
	// The caller chooses the ID, the verb of a path that is not a resource, and all addresses but the last.
	event.AuditID, event.Verb = types.UID(abbreviate(string(event.AuditID))), abbreviate(event.Verb)
	if extra := len(event.SourceIPs) - maxAddresses; extra > 0 {
		event.SourceIPs = event.SourceIPs[extra:]
	}
	event.RequestURI = abbreviate(event.RequestURI)
	event.UserAgent = abbreviate(event.UserAgent)
	if event.ObjectRef != nil {
		object := *event.ObjectRef
		for _, text := range []*string{&object.Resource, &object.Subresource, &object.Namespace, &object.Name, &object.APIGroup, &object.APIVersion, &object.ResourceVersion} {
			*text = abbreviate(*text)
		}
		object.UID = types.UID(abbreviate(string(object.UID)))
		event.ObjectRef = &object
	}
	if event.ResponseStatus != nil {
		status := *event.ResponseStatus
		if status.Message = abbreviate(status.Message); status.Code >= http.StatusBadRequest {
			if status.Details != nil {
				details := *status.Details
				details.Name, details.Causes = abbreviate(details.Name), nil // the causes repeat the message
				status.Details = &details
			}
			if auditinternal.LevelMetadata.Less(event.Level) {
				event.Level = auditinternal.LevelMetadata
			}
			event.RequestObject, event.ResponseObject = nil, nil
		}
		event.ResponseStatus = &status
	}
	if tooLarge(event.RequestObject) || tooLarge(event.ResponseObject) {
		event.Level, event.RequestObject, event.ResponseObject = auditinternal.LevelMetadata, nil, nil
		event.Annotations = maps.Clone(event.Annotations)
		if event.Annotations == nil {
			event.Annotations = map[string]string{}
		}
		event.Annotations[truncated] = "true"
	}
	return &event
}

func tooLarge(object *runtime.Unknown) bool { return object != nil && len(object.Raw) > maxAudited }
