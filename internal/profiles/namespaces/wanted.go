package namespaces

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// placeholder stands for the name of the namespace in names and values.
const placeholder = "{namespace}"

var otherPlaceholder = regexp.MustCompile(`\{[^{}]*\}`)

// key names an object of a namespace.
type key struct{ Kind, Name string }

func (k key) String() string { return k.Kind + " " + k.Name }

// wanted are the objects that a namespace has by a template, in the order of their writing: what limits is first, what gives rights is last.
func wanted(spec *accounts.NamespaceTemplateSpec, namespace string) ([]*unstructured.Unstructured, error) {
	filled, err := fill(spec, namespace)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	add := func(object runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		objects = append(objects, &unstructured.Unstructured{Object: content})
		return nil
	}
	for _, account := range filled.ServiceAccounts {
		if account.Profile == nil {
			continue
		}
		profile := &accounts.ServiceAccountProfile{TypeMeta: typeOf(accounts.SchemeGroupVersion, "ServiceAccountProfile"), ObjectMeta: named(namespace, account.Name), Spec: *account.Profile}
		if err := add(profile); err != nil {
			return nil, err
		}
	}
	for _, account := range filled.ServiceAccounts {
		objects = append(objects, serviceAccount(namespace, account))
	}
	for _, b := range filled.RoleBindings {
		if err := add(roleBinding(namespace, b)); err != nil {
			return nil, err
		}
	}
	if filled.Labels[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled {
		agent := roleBinding(namespace, accounts.TemplateRoleBinding{Name: rights.AgentAccount, ClusterRole: rights.AgentIdentities})
		agent.Subjects = rights.OfAgent(namespace).Subjects
		return objects, add(agent)
	}
	return objects, nil
}

func typeOf(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// serviceAccount has the fields of the template and no others: those that are not in it are not this field manager's.
func serviceAccount(namespace string, account accounts.TemplateServiceAccount) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	object.SetNamespace(namespace)
	object.SetName(account.Name)
	if len(account.Annotations) > 0 {
		object.SetAnnotations(account.Annotations)
	}
	if account.AutomountToken != nil {
		object.Object["automountServiceAccountToken"] = *account.AutomountToken
	}
	return object
}

func roleBinding(namespace string, b accounts.TemplateRoleBinding) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		TypeMeta: typeOf(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: named(namespace, b.Name),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.ClusterRole},
	}
	binding.Labels = map[string]string{bindingLabel: bindingValue}
	for _, name := range b.ServiceAccounts {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	for _, name := range b.Groups {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	return binding
}

// fill puts the name of a namespace where the placeholder is. Another placeholder is an error, and so are names that this makes equal.
func fill(spec *accounts.NamespaceTemplateSpec, namespace string) (*accounts.NamespaceTemplateSpec, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	if value, err = fillValue(value, namespace); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(value); err != nil {
		return nil, err
	}
	filled := &accounts.NamespaceTemplateSpec{}
	if err := json.Unmarshal(text, filled); err != nil {
		return nil, err
	}
	seen := map[key]bool{}
	for _, object := range names(filled) {
		if seen[object] {
			return nil, fmt.Errorf("%s is in the template twice, once %s is filled in", object, placeholder)
		}
		seen[object] = true
	}
	return filled, nil
}

func names(spec *accounts.NamespaceTemplateSpec) []key {
	var all []key
	for _, account := range spec.ServiceAccounts {
		all = append(all, key{"ServiceAccount", account.Name})
	}
	for _, b := range spec.RoleBindings {
		all = append(all, key{"RoleBinding", b.Name})
	}
	if spec.Labels[v1alpha1.LabelNamespaceIdentities] != "" {
		all = append(all, key{"RoleBinding", rights.AgentAccount})
	}
	return all
}

// gives reports whether a template gives a namespace a service account, a profile or a RoleBinding.
func gives(spec *accounts.NamespaceTemplateSpec, namespace string, object key) bool {
	if object.Kind == "RoleBinding" {
		return slices.ContainsFunc(spec.RoleBindings, func(b accounts.TemplateRoleBinding) bool {
			return strings.ReplaceAll(b.Name, placeholder, namespace) == object.Name
		}) || object.Name == rights.AgentAccount && spec.Labels[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled
	}
	return slices.ContainsFunc(spec.ServiceAccounts, func(account accounts.TemplateServiceAccount) bool {
		return strings.ReplaceAll(account.Name, placeholder, namespace) == object.Name && (object.Kind == "ServiceAccount" || account.Profile != nil)
	})
}

func fillValue(value any, namespace string) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		v = strings.ReplaceAll(v, placeholder, namespace)
		if other := otherPlaceholder.FindString(v); other != "" {
			return nil, fmt.Errorf("%s is not a placeholder: there is %s alone", other, placeholder)
		}
		return v, nil
	case []any:
		for i := range v {
			if v[i], err = fillValue(v[i], namespace); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = fillValue(v[name], namespace); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
