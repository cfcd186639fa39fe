package credentialsbinding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

var table = stored.Table[*v1alpha1.CredentialsBinding]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the binding."},
		{Name: "Provider", Type: "string", Description: "Kind of provider that the credentials are for."},
		{Name: "Credentials", Type: "string", Description: "The Secret or the WorkloadIdentity that the binding refers to."},
		{Name: "Age", Type: "string", Description: "Time since the binding was created."},
	},
	Cells: func(binding *v1alpha1.CredentialsBinding, name, age string) []any {
		return []any{name, binding.Provider.Type, credentials(binding), age}
	},
}

func credentials(binding *v1alpha1.CredentialsBinding) string {
	if binding.SecretRef != nil {
		return "Secret " + nameOf(binding.SecretRef)
	}
	return "WorkloadIdentity " + nameOf(binding.WorkloadIdentityRef)
}
