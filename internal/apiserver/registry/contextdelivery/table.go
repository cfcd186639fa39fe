package contextdelivery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

var table = stored.Table[*v1alpha1.ContextDelivery]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "A digest of the Secret and of the object."},
		{Name: "Secret", Type: "string", Description: "Namespace and name of the Secret in the workload cluster."},
		{Name: "Identity", Type: "string", Description: "Namespace and name of the WorkloadIdentity, or of the CredentialsBinding whose data is delivered."},
		{Name: "For", Type: "string", Description: "The object that needs the Secret."},
		{Name: "Problem", Type: "string", Description: "Why it cannot be delivered."},
		{Name: "Age", Type: "string", Description: "Time since the object was created."},
	},
	Cells: func(d *v1alpha1.ContextDelivery, name, age string) []any {
		secret, identity := "", ""
		if d.Spec.Secret.Name != "" {
			secret = d.Spec.Secret.Namespace + "/" + d.Spec.Secret.Name
		}
		if to := d.Spec.WorkloadIdentity; to != nil {
			identity = to.Namespace + "/" + to.Name
		} else if by := d.Spec.CredentialsBinding; by != nil && d.Spec.Problem == "" {
			identity = "data of " + by.Namespace + "/" + by.Name
		}
		return []any{name, secret, identity, titleOf(d.Spec.ContextObject), d.Spec.Problem, age}
	},
}
