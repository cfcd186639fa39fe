package stored

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

func TestTable(t *testing.T) {
	table := Table[*kind]{
		Columns: []metav1.TableColumnDefinition{{Name: "Name"}},
		Cells:   func(object *kind, name, _ string) []any { return []any{name, object.Spec.Users[0]} },
	}
	list := &v1alpha1.WorkloadClusterList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"},
		Items:    []kind{{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1alpha1.WorkloadClusterSpec{Users: []string{"anna"}}}},
	}
	out, err := table.ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	testkit.Must(t, err)
	if len(out.Rows) != 1 || out.Rows[0].Cells[0] != "east" || out.Rows[0].Cells[1] != "anna" || out.ResourceVersion != "7" || out.Continue != "more" || out.ColumnDefinitions != nil {
		t.Errorf("table of a list without headers: %+v", out)
	}
	if out, err = table.ConvertToTable(t.Context(), &list.Items[0], nil); err != nil || len(out.Rows) != 1 || len(out.ColumnDefinitions) != 1 {
		t.Errorf("table of one object: %+v, %v", out, err)
	}
	if _, err := table.ConvertToTable(t.Context(), &v1alpha1.KeyRing{}, nil); err == nil {
		t.Error("an object of another type is converted")
	}
}

func TestSetGeneration(t *testing.T) {
	after := &kind{}
	before := &kind{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	if SetGeneration(after, before, false); after.Generation != 3 {
		t.Errorf("generation %d after a change of metadata", after.Generation)
	}
	if SetGeneration(after, before, true); after.Generation != 4 {
		t.Errorf("generation %d after a change of the spec", after.Generation)
	}
}
