package accounts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Account is a service account with what belongs to it. Its workload identity has its name.
type Account struct {
	access.Account
	Target   *targets.Declared // of the workload identity; nil: none
	Template string            // the SecurityContextTemplate of its profile; empty: no profile
	Mode     profiles.Mode     // of the profile
}

func (a Account) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.Namespace, Name: name}
}

// Profile refers to the template; nil without one.
func (a Account) Profile() *profiles.ServiceAccountProfile {
	if a.Template == "" {
		return nil
	}
	return &profiles.ServiceAccountProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: profiles.SchemeGroupVersion.String(), Kind: "ServiceAccountProfile"},
		ObjectMeta: a.meta(a.Name),
		Spec: profiles.ServiceAccountProfileSpec{SecurityContext: &profiles.ProfileSecurityContext{
			Mode: a.Mode, TemplateRef: &profiles.TemplateReference{Name: a.Template},
		}},
	}
}

// CheckProfile refuses a stored profile that has another security context than that of a template, or workload identities: these are in the
// annotation of the account.
func (a Account) CheckProfile(stored *profiles.ServiceAccountProfile) error {
	if a.Template != "" && !reflect.DeepEqual(stored.Spec.SecurityContext, a.Profile().Spec.SecurityContext) {
		return fmt.Errorf("ServiceAccountProfile %s of namespace %s exists with another security context than template %s in mode %s", a.Name, a.Namespace, a.Template, a.Mode)
	}
	if a.Target != nil && stored.Spec.WorkloadIdentities != nil {
		return fmt.Errorf("ServiceAccountProfile %s of namespace %s exists with workloadIdentities: pods of an account that has its identities by an annotation, too, are refused", a.Name, a.Namespace)
	}
	return nil
}

// Identity is the workload identity; nil without a target.
func (a Account) Identity() *v1alpha1.WorkloadIdentity {
	if a.Target == nil {
		return nil
	}
	identity := &v1alpha1.WorkloadIdentity{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity"},
		ObjectMeta: a.meta(a.Name),
		Spec:       v1alpha1.WorkloadIdentitySpec{Audiences: a.Target.Audiences, TargetSystem: v1alpha1.TargetSystem{Type: a.Target.Type}},
	}
	if a.Target.ProviderConfig != nil {
		identity.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: a.Target.ProviderConfig}
	}
	return identity
}

// CheckIdentity refuses a stored identity of another target: it may be in use.
func (a Account) CheckIdentity(stored *v1alpha1.WorkloadIdentity) error {
	wanted := a.Identity().Spec
	if stored.Spec.TargetSystem.Type == wanted.TargetSystem.Type && slices.Equal(stored.Spec.Audiences, wanted.Audiences) &&
		sameJSON(stored.Spec.TargetSystem.ProviderConfig, wanted.TargetSystem.ProviderConfig) {
		return nil
	}
	return fmt.Errorf("WorkloadIdentity %s of namespace %s exists with another target or audience", a.Name, a.Namespace)
}

func sameJSON(one, other *runtime.RawExtension) bool {
	var values [2]any
	for i, raw := range []*runtime.RawExtension{one, other} {
		if raw == nil || len(bytes.TrimSpace(raw.Raw)) == 0 {
			continue
		}
		if err := json.Unmarshal(raw.Raw, &values[i]); err != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// ServiceAccount is the account itself, with its identity in the annotation.
func (a Account) ServiceAccount() map[string]any {
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": a.Namespace, "name": a.Name}}
	_, _ = a.AddIdentity(account) // one name is never refused
	return account
}

// AddIdentity adds the identity to the annotation of a stored account, and reports whether that was a change. All else stays as it is. An
// annotation by which pods are refused is an error.
func (a Account) AddIdentity(stored map[string]any) (changed bool, err error) {
	if a.Target == nil {
		return false, nil
	}
	annotations := within(within(stored, "metadata"), "annotations")
	listed, _ := annotations[v1alpha1.AnnotationAccountIdentities].(string)
	names, err := tokensecret.ParseIdentities(listed)
	if err == nil && slices.Contains(names, a.Name) {
		return false, nil
	}
	if err == nil {
		listed = strings.Join(append(names, a.Name), ",")
		_, err = tokensecret.ParseIdentities(listed)
	}
	if err != nil {
		return false, fmt.Errorf("ServiceAccount %s of namespace %s: its annotation %s, with %[1]s added, %[4]w", a.Name, a.Namespace, v1alpha1.AnnotationAccountIdentities, err)
	}
	annotations[v1alpha1.AnnotationAccountIdentities] = listed
	return true, nil
}

// within is the object of a member, which is made if it is missing.
func within(object map[string]any, member string) map[string]any {
	inner, ok := object[member].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[member] = inner
	}
	return inner
}

// IdentityRole is the Role with use on the identity alone.
func (a Account) IdentityRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: a.meta("credence:workloadidentities:user:" + a.Name),
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"use"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"workloadidentities"}, ResourceNames: []string{a.Name}}},
	}
}

// IdentityBinding lets the account use the identity.
func (a Account) IdentityBinding() *rbacv1.RoleBinding {
	return binding(a.meta(a.IdentityRole().Name), "Role", a.IdentityRole().Name, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name})
}

func binding(meta metav1.ObjectMeta, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   subjects,
	}
}
