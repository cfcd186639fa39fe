package namespaces

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// mostIncomplete bounds the status.
const mostIncomplete = 100

// report is what became of a template.
type report struct {
	namespaces int
	incomplete []accounts.IncompleteNamespace
	invalid    string // why it selects nothing; empty if it may
}

// condition is Ready.
func (r report) condition() metav1.Condition {
	c := metav1.Condition{Type: accounts.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case r.invalid != "":
		c.Reason, c.Message = "Invalid", r.invalid
	case r.namespaces == 0:
		c.Reason, c.Message = "NoNamespaces", "spec.namespaceSelector selects no namespace (kube-* and credence-system are never selected): correct it, or label a namespace"
	case len(r.incomplete) > 0:
		first := r.incomplete[0]
		c.Reason, c.Message = "Incomplete", fmt.Sprintf("namespaces that are not as the template has them: %d of %d; the first, %s: %s", len(r.incomplete), r.namespaces, first.Name, first.Message)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Complete", fmt.Sprintf("namespaces that are as the template has them: all %d", r.namespaces)
	}
	return c
}

// status is that of a template after a report.
func status(before accounts.NamespaceTemplateStatus, generation int64, r report) accounts.NamespaceTemplateStatus {
	slices.SortFunc(r.incomplete, func(a, b accounts.IncompleteNamespace) int { return cmp.Compare(a.Name, b.Name) })
	after := *before.DeepCopy()
	after.ObservedGeneration, after.Namespaces = generation, int32(min(r.namespaces, 1<<30))
	condition := r.condition()
	condition.ObservedGeneration = generation
	meta.SetStatusCondition(&after.Conditions, condition)
	after.Incomplete = r.incomplete[:min(len(r.incomplete), mostIncomplete)]
	return after
}

func (c *Controller) writeStatus(ctx context.Context, template *accounts.NamespaceTemplate, r report) error {
	after := status(template.Status, template.Generation, r)
	if equality.Semantic.DeepEqual(template.Status, after) {
		return nil
	}
	changed := template.DeepCopy()
	changed.Status = after
	if err := c.client.Status().Patch(ctx, changed, client.MergeFrom(template)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of template %s: %w", template.Name, err))
	}
	return nil
}
