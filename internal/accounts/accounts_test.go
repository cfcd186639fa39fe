package accounts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

func cart(t *testing.T) Account {
	t.Helper()
	declared := testkit.Need(targets.Declare("aws:arn:aws:iam::123456789012:role/cart"))(t)
	return Account{Account: access.Account{Namespace: "shop", Name: "cart"}, Target: &declared, Template: "restricted", Mode: profiles.ModeEnforce}
}

func TestAddIdentity(t *testing.T) {
	for before, want := range map[string]string{"": "cart", "mail": "mail,cart", " mail , cart": " mail , cart", "cart": "cart", " mail ": "mail,cart"} {
		stored := map[string]any{"metadata": map[string]any{"uid": "x", "annotations": map[string]any{v1alpha1.AnnotationAccountIdentities: before, "other": "y"}}, "secrets": []any{"z"}}
		changed, err := cart(t).AddIdentity(stored)
		wanted := map[string]any{"metadata": map[string]any{"uid": "x", "annotations": map[string]any{v1alpha1.AnnotationAccountIdentities: want, "other": "y"}}, "secrets": []any{"z"}}
		if diff := cmp.Diff(wanted, stored); diff != "" || changed != (before != want) || err != nil {
			t.Errorf("%q: %v, %v\n%s", before, changed, err, diff)
		}
	}
	if changed, err := (Account{}).AddIdentity(map[string]any{}); changed || err != nil {
		t.Errorf("an account without an identity gets one: %v", err)
	}
	// Pods of such accounts are refused: more names mend nothing.
	for before, want := range map[string]string{"mail,,till": "with cart added, has an empty name", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p": "with cart added, lists 17 identities"} {
		stored := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationAccountIdentities: before}}}
		if changed, err := cart(t).AddIdentity(stored); changed || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", before, changed, err)
		}
	}
}

// Stored objects that differ from the wanted ones are in the way.
func TestInTheWay(t *testing.T) {
	a := cart(t)
	testkit.Expect(t, a.CheckIdentity(a.Identity()))
	for what, change := range map[string]func(*v1alpha1.WorkloadIdentitySpec){
		"type":           func(s *v1alpha1.WorkloadIdentitySpec) { s.TargetSystem.Type = "azure" },
		"audience":       func(s *v1alpha1.WorkloadIdentitySpec) { s.Audiences = []string{"x"} },
		"providerConfig": func(s *v1alpha1.WorkloadIdentitySpec) { s.TargetSystem.ProviderConfig = nil },
		"role": func(s *v1alpha1.WorkloadIdentitySpec) {
			s.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"iamRoleARN":"x"}`)}
		},
	} {
		stored := a.Identity()
		if change(&stored.Spec); a.CheckIdentity(stored) == nil {
			t.Errorf("%s: not refused", what)
		}
	}
	testkit.Expect(t, a.CheckProfile(a.Profile()))
	for what, change := range map[string]func(*profiles.ServiceAccountProfileSpec){
		"mode":       func(s *profiles.ServiceAccountProfileSpec) { s.SecurityContext.Mode = profiles.ModeDefault },
		"template":   func(s *profiles.ServiceAccountProfileSpec) { s.SecurityContext.TemplateRef.Name = "x" },
		"none":       func(s *profiles.ServiceAccountProfileSpec) { s.SecurityContext = nil },
		"identities": func(s *profiles.ServiceAccountProfileSpec) { s.WorkloadIdentities = []string{} },
	} {
		stored := a.Profile()
		if change(&stored.Spec); a.CheckProfile(stored) == nil {
			t.Errorf("%s: not refused", what)
		}
	}
	stored := a.Profile()
	a.Template = ""
	testkit.Expect(t, a.CheckProfile(stored))
	if stored.Spec.WorkloadIdentities = []string{"x"}; a.CheckProfile(stored) == nil {
		t.Error("an identity by an annotation, too: not refused")
	}
}

func TestNamespace(t *testing.T) {
	n := Namespace{Name: "shop", AccountUse: access.Enforce, Profiles: true, Makers: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "team"}}}
	stored := map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a", access.ModeLabel: "audit"}}}
	want := map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a", access.ModeLabel: "enforce", v1alpha1.LabelNamespaceIdentities: "enabled", profiles.LabelNamespaceProfiles: "enabled"}}}
	changed := n.SetLabels(stored)
	if diff := cmp.Diff(want, stored); diff != "" || !changed {
		t.Errorf("changed: %v\n%s", changed, diff)
	}
	if n.SetLabels(stored) {
		t.Error("a second time changes something")
	}
	// Labels that are not wanted stay.
	if n.AccountUse, n.Profiles = "", false; n.SetLabels(stored) {
		t.Error("labels are changed")
	}
	if got := n.Bindings(); len(got) != 2 || got[1].RoleRef.Name != MakerRole {
		t.Errorf("bindings: %v", got)
	}
}
