package namespaces

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profiles"
	"github.com/credence-id/credence/internal/wording"
)

// Reasons of an incomplete namespace; where there are several, the first.
const (
	reasonInvalid       = "Invalid"       // the template, or an object of it, is
	reasonContradiction = "Contradiction" // an older template wants something else
	reasonConflict      = "Conflict"      // something is another's
	reasonForbidden     = "Forbidden"     // a right of the process is missing, or a policy refuses
	reasonFailed        = "Failed"        // the API server did not do its work: it is tried again
)

// problems are collected in a namespace.
type problems struct {
	reason string
	texts  []string
}

func (p *problems) add(reason, text string) {
	p.reason = cmp.Or(p.reason, reason)
	p.texts = append(p.texts, text)
}

// maxMessage is how much of a message a status has: up to a hundred are in one.
const maxMessage = 1000

// write writes all that a template has in a namespace. RoleBindings are given where all else, which limits them, was written. Apart from that, a
// refusal keeps nothing else from being written.
func (c *Controller) write(ctx context.Context, template *accounts.NamespaceTemplate, older []*accounts.NamespaceTemplate, namespace *metav1.PartialObjectMetadata) *accounts.IncompleteNamespace {
	var found problems
	labels, objects, contradictions, err := split(template, older, namespace.Name)
	if err != nil {
		found.add(reasonInvalid, err.Error())
	}
	for _, text := range contradictions {
		found.add(reasonContradiction, text)
	}
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "RoleBinding" })
	if at < 0 {
		at = len(objects)
	}
	contradicted := len(found.texts)
	if c.label(ctx, namespace, labels, &found) || c.apply(ctx, objects[:at], &found) {
		return nil
	}
	if len(found.texts) > contradicted && at < len(objects) {
		found.texts = append(found.texts, "RoleBindings are not written until then")
	} else if c.apply(ctx, objects[at:], &found) {
		return nil
	}
	if found.reason == "" {
		return nil
	}
	return &accounts.IncompleteNamespace{Name: namespace.Name, Reason: found.reason, Message: wording.AbbreviateTo(strings.Join(found.texts, "; "), maxMessage)}
}

// apply writes objects, each as far as it is not refused.
func (c *Controller) apply(ctx context.Context, objects []*unstructured.Unstructured, found *problems) (gone bool) {
	for _, object := range objects {
		if err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager)); err != nil && sort(err, keyOf(object).String(), found) {
			return true
		}
	}
	return false
}

// label gives a namespace the labels that it lacks, each by itself, so that one which is refused keeps none from it. Labels that were given before
// stay: an application without them would remove them.
func (c *Controller) label(ctx context.Context, namespace *metav1.PartialObjectMetadata, wanted map[string]string, found *problems) (gone bool) {
	if len(missing(wanted, namespace.Labels)) == 0 {
		return false
	}
	stored := profiles.Metadata("Namespace")
	if err := c.live.Get(ctx, client.ObjectKey{Name: namespace.Name}, stored); err != nil {
		return sort(err, "the namespace", found)
	}
	if !stored.DeletionTimestamp.IsZero() || stored.UID != namespace.UID {
		return true
	}
	given, lacks := owned(stored), missing(wanted, stored.Labels)
	for _, label := range slices.Sorted(maps.Keys(lacks)) {
		labels := maps.Clone(given)
		labels[label] = lacks[label]
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		object.SetName(namespace.Name)
		object.SetUID(namespace.UID)
		object.SetLabels(labels)
		if err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager)); err == nil {
			given = labels
		} else if gone := sort(err, "label "+label, found); gone {
			return true
		}
	}
	return false
}

// owned are the labels of a namespace that are this field manager's.
func owned(namespace *metav1.PartialObjectMetadata) map[string]string {
	labels := map[string]string{}
	for _, entry := range namespace.ManagedFields {
		var fields struct {
			Metadata struct {
				Labels map[string]any `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if entry.Manager != fieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for name := range fields.Metadata.Labels {
			if label, ok := strings.CutPrefix(name, "f:"); ok {
				labels[label] = namespace.Labels[label]
			}
		}
	}
	return labels
}

// sort notes an error with the reason that it is. gone: the namespace terminates, or does not exist any more, which is not reported.
func sort(err error, what string, found *problems) (gone bool) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true
	case apierrors.IsNotFound(err):
		return true
	case apierrors.IsConflict(err):
		found.add(reasonConflict, what+": "+conflicts(err))
	case apierrors.IsForbidden(err):
		found.add(reasonForbidden, fmt.Sprintf("%s: %v", what, err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		found.add(reasonInvalid, fmt.Sprintf("%s: %v", what, err))
	default:
		found.add(reasonFailed, fmt.Sprintf("%s: %v", what, err))
	}
	return false
}

// conflicts lists the fields that are others', and whose.
func conflicts(err error) string {
	var fields []string
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field+" ("+cause.Message+")")
		}
	}
	if fields == nil {
		return err.Error()
	}
	return "another field manager has " + strings.Join(fields, ", ")
}
