package profiles

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// facts are what the status of a profile is decided from.
type facts struct {
	profile *accounts.ServiceAccountProfile
	// account reports whether the service account exists.
	account bool
	// template is the SecurityContextTemplate that the profile names; nil if it is missing, or if it names no template.
	template *accounts.SecurityContextTemplate
}

// outcome is what becomes of a profile.
type outcome struct {
	conditions []metav1.Condition
}

// Reasons of conditions.
const (
	reasonApplied         = "ProfileApplied"
	reasonAccountMissing  = "AccountMissing"
	reasonTemplateMissing = "TemplateMissing"
)

// templateOf returns the name of the SecurityContextTemplate that a profile names; empty if it names none.
func templateOf(profile *accounts.ServiceAccountProfile) string {
	if context := profile.Spec.SecurityContext; context != nil && context.TemplateRef != nil {
		return context.TemplateRef.Name
	}
	return ""
}

func decide(known facts) outcome {
	return outcome{conditions: []metav1.Condition{ready(known)}}
}

// ready decides the condition Ready: whether pods of the account get what the profile has.
func ready(known facts) metav1.Condition {
	name := known.profile.Name
	switch template := templateOf(known.profile); {
	case template != "" && known.template == nil:
		return condition(accounts.ConditionReady, false, reasonTemplateMissing,
			fmt.Sprintf("SecurityContextTemplate %s does not exist: pods of the account are refused until it does, or until spec.securityContext.templateRef names another one", template))
	case !known.account:
		return condition(accounts.ConditionReady, false, reasonAccountMissing,
			fmt.Sprintf("service account %s does not exist: the profile waits for it; create it with: kubectl create serviceaccount %s -n %s", name, name, known.profile.Namespace))
	}
	return condition(accounts.ConditionReady, true, reasonApplied, "new pods of the account have what the profile wants")
}

func condition(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
