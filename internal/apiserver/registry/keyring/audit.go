package keyring

import (
	"context"
	"strings"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	operation "github.com/credence-id/credence/internal/keyring"
	"k8s.io/apiserver/pkg/audit"
)

// Annotations of the audit event of a rotation or revocation that was carried out. The reason that was given is in the
// request, which is recorded whole.
const (
	// AuditChanges lists what happened: "activated <kid>, retired <kid>".
	AuditChanges = "keyring." + v1alpha1.GroupName + "/changes"
	// AuditReason is why.
	AuditReason = "keyring." + v1alpha1.GroupName + "/reason"
)

func annotate(ctx context.Context, outcome operation.Outcome, reason string) {
	var changes []string
	for _, event := range outcome.Events {
		changes = append(changes, string(event.Kind)+" "+string(event.Key))
	}
	if len(changes) == 0 {
		changes = []string{"none: it is requested already"}
	}
	audit.AddAuditAnnotations(ctx, AuditChanges, strings.Join(changes, ", "), AuditReason, reason)
}
