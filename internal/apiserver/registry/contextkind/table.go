package contextkind

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

var table = stored.Table[*v1alpha1.ContextKind]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Resource and group of the objects."},
		{Name: "Kind", Type: "string", Description: "Kind of the objects."},
		{Name: "Claims", Type: "string", Description: "Members of gardener.cloud in a token of such an object."},
		{Name: "Age", Type: "string", Description: "Time since the ContextKind was created."},
	},
	Cells: func(kind *v1alpha1.ContextKind, name, age string) []any {
		claims := []string{kind.Spec.Claim}
		for _, related := range kind.Spec.Related {
			claims = append(claims, related.Claim)
		}
		return []any{name, kind.Spec.Object.Group + "/" + kind.Spec.Object.Version + " " + kind.Spec.Object.Kind, strings.Join(claims, ","), age}
	},
}
