package keyring

import (
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var table = stored.Table[*v1alpha1.KeyRing]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the key ring."},
		{Name: "Ready", Type: "string", Description: "Whether a key of every algorithm signs."},
		{Name: "Rotating", Type: "string", Description: "Why a rotation that is due does not take place; OnTime without one."},
		{Name: "Keys", Type: "integer", Description: "How many keys are published."},
		{Name: "Signing", Type: "string", Description: "The start of the ID of the key that signs, for each algorithm."},
		{Name: "Next Change", Type: "string", Description: "When the published documents change next (UTC)."},
		{Name: "Age", Type: "string", Description: "Time since the key ring was created."},
		{Name: "Issuer", Type: "string", Priority: 1, Description: "The iss claim of the tokens that the keys sign."},
	},
	Cells: func(ring *v1alpha1.KeyRing, name, age string) []any {
		ready, rotating, next := "Unknown", "Unknown", "<none>"
		if condition := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
			ready = string(condition.Status)
		}
		if condition := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionRotating); condition != nil {
			rotating = condition.Reason
		}
		if ring.Status.NextChange != nil {
			next = ring.Status.NextChange.UTC().Format(time.RFC3339)
		}
		return []any{name, ready, rotating, len(ring.Status.Keys), ring.Status.Signing, next, age, ring.Status.Issuer}
	},
}
