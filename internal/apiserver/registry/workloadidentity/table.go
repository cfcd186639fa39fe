package workloadidentity

import (
	"fmt"
	"strings"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// newTable is what kubectl get prints, with times as they are at that moment.
func newTable(clock clock.PassiveClock) stored.Table[*v1alpha1.WorkloadIdentity] {
	return stored.Table[*v1alpha1.WorkloadIdentity]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the identity."},
			{Name: "Ready", Type: "string", Description: "Whether tokens can be issued, and no delivery is known to fail."},
			{Name: "Delivered", Type: "string", Description: "How many of the Secrets that ask for tokens have one."},
			{Name: "Expires", Type: "string", Description: "Time until the first of these tokens expires."},
			{Name: "Target", Type: "string", Description: "Kind of system that the tokens are presented to."},
			{Name: "Age", Type: "string", Description: "Time since the identity was created."},
			{Name: "Last Failure", Type: "string", Priority: 1, Description: "Why a Secret has no new token."},
			{Name: "Subject", Type: "string", Priority: 1, Description: "The sub claim of the identity's tokens."},
			{Name: "Audiences", Type: "string", Priority: 1, Description: "The aud claim of the identity's tokens."},
		},
		Cells: func(wi *v1alpha1.WorkloadIdentity, name, age string) []any {
			cells := append([]any{name}, deliveryCells(wi, clock.Now())...)
			return append(cells, wi.Spec.TargetSystem.Type, age, lastFailure(wi, clock.Now()), wi.Status.Sub, strings.Join(wi.Spec.Audiences, ","))
		},
	}
}

// deliveryCells are Ready, Delivered and Expires.
func deliveryCells(wi *v1alpha1.WorkloadIdentity, now time.Time) []any {
	d, ready := sum(wi, now), string(ready(wi, now).Status)
	if d.Secrets == 0 {
		return []any{ready, "-", "-"}
	}
	expires := "-"
	if d.Expires != nil {
		if left := d.Expires.Sub(now); left > 0 {
			expires = duration.HumanDuration(left)
		} else {
			expires = "expired"
		}
	}
	return []any{ready, fmt.Sprintf("%d/%d", d.Delivered, d.Secrets), expires}
}

func lastFailure(wi *v1alpha1.WorkloadIdentity, now time.Time) string {
	if failure := sum(wi, now).Failure; failure != nil {
		return failure.Reason + ": " + failure.Message
	}
	return "-"
}
