package profiles

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/internal/wording"
)

// facts are what the status of a profile is decided from.
type facts struct {
	profile *accounts.ServiceAccountProfile
	// account is the metadata of the service account; nil if it does not exist.
	account *metav1.PartialObjectMetadata
	// template is the SecurityContextTemplate that the profile names; nil if it is missing, or if it names no template.
	template *accounts.SecurityContextTemplate
	// username is what was decided about it.
	username username.Decision
}

// outcome is what becomes of a profile.
type outcome struct {
	username   string
	conditions []metav1.Condition
}

// Reasons of conditions.
const (
	reasonApplied         = "ProfileApplied"
	reasonAccountMissing  = "AccountMissing"
	reasonTemplateMissing = "TemplateMissing"
	reasonInvalidContext  = "SecurityContextInvalid"
	reasonIdentitiesTwice = "IdentitiesTwice"
)

func decide(known facts) outcome {
	name := known.username
	return outcome{username: name.Username, conditions: []metav1.Condition{
		ready(known),
		condition(accounts.ConditionUsernameUnique, name.Username != "", name.Reason, name.Message),
	}}
}

// ready decides the condition Ready: whether the profile can be applied to pods of the account.
func ready(known facts) metav1.Condition {
	name := known.profile.Name
	resolved := profile.Resolve(known.profile, known.template)
	switch template := resolved.Template; {
	case template != "" && known.template == nil:
		return condition(accounts.ConditionReady, false, reasonTemplateMissing,
			fmt.Sprintf("SecurityContextTemplate %s does not exist: pods of the account are refused until it does, or until spec.securityContext.templateRef names another one", template))
	case len(resolved.Faults) > 0:
		faults := make([]string, 0, len(resolved.Faults))
		for _, fault := range resolved.Faults {
			faults = append(faults, fault.Error())
		}
		where := "the profile"
		if template != "" {
			where = "SecurityContextTemplate " + template
		}
		return condition(accounts.ConditionReady, false, reasonInvalidContext,
			wording.AbbreviateTo(fmt.Sprintf("Kubernetes would refuse pods with the security context of %s, so pods of the account are refused: %s", where, strings.Join(faults, "; ")), 1024))
	case known.account == nil:
		return condition(accounts.ConditionReady, false, reasonAccountMissing,
			fmt.Sprintf("service account %s does not exist: the profile waits for it; a user who may create service accounts there creates it with: kubectl create serviceaccount %s -n %s", name, name, known.profile.Namespace))
	}
	if known.profile.Spec.WorkloadIdentities != nil && known.account.Annotations[v1alpha1.AnnotationAccountIdentities] != "" {
		return condition(accounts.ConditionReady, false, reasonIdentitiesTwice,
			fmt.Sprintf("both spec.workloadIdentities and the annotation %s of service account %s name identities: remove one of them", v1alpha1.AnnotationAccountIdentities, name))
	}
	return condition(accounts.ConditionReady, true, reasonApplied, "the profile can be applied to pods of the account")
}

func condition(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
