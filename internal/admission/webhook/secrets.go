package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/secrets"
)

// secretReviews decides on Secrets that carry tokens.
func secretReviews(needs Needs) decider[corev1.Secret] {
	return func(_ context.Context, r *request[corev1.Secret]) (answer, error) {
		if r.Resource.Group != "" || r.Resource.Resource != "secrets" || r.SubResource != "" || r.Object == nil {
			return wrong("this webhook is for secrets, not for %s", r.about()), nil
		}
		if r.Operation != admissionv1.Create && (r.Operation != admissionv1.Update || r.OldObject == nil) {
			return wrong("this webhook is for CREATE and UPDATE of secrets, not for %s", r.Operation), nil
		}
		return answerOf(secrets.Decide(secrets.Request{Secret: r.Object, Old: r.OldObject, User: r.UserInfo, Agent: needs.Agent, Adapters: needs.Adapters})), nil
	}
}
