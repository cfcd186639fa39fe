package rights

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// TestWhatTheBinderMayBind of test/e2e holds the policy credence-binder to the same rule.
func TestLetDeliver(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*rbacv1.RoleBinding)
		want   bool
	}{
		"as it is made":   {func(*rbacv1.RoleBinding) {}, true},
		"with labels":     {func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{"a": "b"} }, true},
		"another role":    {func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "edit" }, false},
		"a Role":          {func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "Role" }, false},
		"another account": {func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = webhookAccount }, false},
		"a user of it":    {func(b *rbacv1.RoleBinding) { b.Subjects[0] = rbacv1.Subject{Kind: rbacv1.UserKind, Name: Agent().Name} }, false},
		"one more":        {func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, b.Subjects[0]) }, false},
		"no subject":      {func(b *rbacv1.RoleBinding) { b.Subjects = nil }, false},
	} {
		b := OfAgent("orchard")
		if test.change(b); LetDeliver(b) != test.want {
			t.Errorf("%s: %v, want %v", name, !test.want, test.want)
		}
	}
}

func TestDelivered(t *testing.T) {
	enabled := map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	for name, test := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"orchard":         {enabled, true},
		"plain":           {nil, false},
		"misspelt":        {map[string]string{v1alpha1.LabelNamespaceIdentities: "true"}, false},
		"kube-system":     {enabled, false},
		"kube-any":        {enabled, false},
		"kubernetes":      {enabled, true},
		"credence-system": {enabled, false},
		"shoot":           {map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}, true},
		"no shoot":        {map[string]string{v1alpha1.LabelNamespaceContexts: "true"}, false},
		"kube-public":     {map[string]string{v1alpha1.LabelNamespaceContexts: v1alpha1.NamespaceEnabled}, false},
	} {
		if got := Delivered(&metav1.ObjectMeta{Name: name, Labels: test.labels}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
