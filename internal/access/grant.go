package access

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// UserRole is the ClusterRole with use on every account. The Roles of single accounts add the account to its name.
	UserRole = "credence:serviceaccounts:user"
	// All is the name that stands for every account of a namespace.
	All = "*"

	accountUser = "system:serviceaccount:"
)

// Account is a service account, or with the name All every one of its namespace.
type Account struct{ Namespace, Name string }

func (a Account) String() string { return a.Namespace + "/" + a.Name }

// Check returns what is wrong with the names of an account.
func (a Account) Check() error {
	if reasons := validation.IsDNS1123Label(a.Namespace); len(reasons) > 0 {
		return fmt.Errorf("%q is not the name of a namespace: %s", a.Namespace, reasons[0])
	}
	if reasons := validation.IsDNS1123Subdomain(a.Name); len(reasons) > 0 && a.Name != All {
		return fmt.Errorf("%q is not the name of a service account: %s", a.Name, reasons[0])
	}
	return nil
}

// Subject is a user or a group as RBAC names them. The user of a service account becomes that account.
func Subject(name string, group bool) (rbacv1.Subject, error) {
	account, isAccount := strings.CutPrefix(name, accountUser)
	switch {
	case name == "":
		return rbacv1.Subject{}, fmt.Errorf("the name of the user is empty")
	case group:
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}, nil
	case !isAccount:
		return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}, nil
	}
	namespace, short, _ := strings.Cut(account, ":")
	if err := (Account{namespace, short}).Check(); err != nil || short == All {
		return rbacv1.Subject{}, fmt.Errorf("%q is not the user name of a service account, which is %sNAMESPACE:NAME", name, accountUser)
	}
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: short}, nil
}

// Role is the Role with use on the account alone; nil for all accounts, which UserRole is for.
func (a Account) Role() *rbacv1.Role {
	if a.Name == All {
		return nil
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: UserRole + ":" + a.Name},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"use"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{a.Name}}},
	}
}

// Binding gives subjects the right to use the account.
func (a Account) Binding(subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: UserRole}
	if role := a.Role(); role != nil {
		ref.Kind, ref.Name = role.Kind, role.Name
	}
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: ref.Name},
		RoleRef:    ref,
		Subjects:   subjects,
	}
}

// CheckRole refuses a stored Role that has the name of a wanted one, and other rules: its users would get more, or less, than is wanted.
func CheckRole(stored, wanted *rbacv1.Role) error {
	if !reflect.DeepEqual(stored.Rules, wanted.Rules) {
		rule := wanted.Rules[0]
		return fmt.Errorf("Role %s of namespace %s exists with other rules than %s on %s %s", stored.Name, stored.Namespace, rule.Verbs[0], rule.Resources[0], rule.ResourceNames[0])
	}
	return nil
}

// Merge adds the subjects of a wanted RoleBinding to the stored one of its name, and reports whether that was a change.
func Merge(stored, wanted *rbacv1.RoleBinding) (changed bool, err error) {
	if stored.RoleRef != wanted.RoleRef {
		return false, fmt.Errorf("RoleBinding %s of namespace %s exists for another role, %s %s", stored.Name, stored.Namespace, stored.RoleRef.Kind, stored.RoleRef.Name)
	}
	for _, subject := range wanted.Subjects {
		if !slices.Contains(stored.Subjects, subject) {
			stored.Subjects, changed = append(stored.Subjects, subject), true
		}
	}
	return changed, nil
}
