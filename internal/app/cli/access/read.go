package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// facts are what is read of a cluster about an account, and notes on what the caller may not read.
type facts struct {
	api     *cluster.API
	account access.Account
	notes   []string
}

func (f *facts) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// list reads a list. One that the caller may not read, or that the cluster does not have, is noted; read is false.
func list[Object any](ctx context.Context, f *facts, l cluster.Listing, without string, visit func(*Object)) (read bool, err error) {
	err = cluster.Each(ctx, f.api, l, visit)
	switch {
	case apierrors.IsForbidden(err):
		f.note("%s were not read: you may not list them. %s", l.Resource, without)
		return false, nil
	case apierrors.IsNotFound(err):
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list %s: %w", l.Resource, err)
	}
	return true, nil
}

// rights reads what RBAC has for the namespace of the account.
func (f *facts) rights(ctx context.Context) (*access.Rights, error) {
	rights := &access.Rights{Namespace: f.account.Namespace}
	roles := map[string][]rbacv1.PolicyRule{}
	read, err := list(ctx, f, cluster.Listing{API: rbac, Namespace: f.account.Namespace, Resource: "roles"}, "What they give is missing",
		func(r *rbacv1.Role) { roles[r.Name] = r.Rules })
	if err != nil {
		return nil, err
	}
	if read {
		rights.Roles = roles
	}
	clusterRoles := map[string][]rbacv1.PolicyRule{}
	read, err = list(ctx, f, cluster.Listing{API: rbac, Resource: "clusterroles"}, "What they give is missing",
		func(r *rbacv1.ClusterRole) { clusterRoles[r.Name] = r.Rules })
	if err != nil {
		return nil, err
	}
	if read {
		rights.ClusterRoles = clusterRoles
	}
	if _, err = list(ctx, f, cluster.Listing{API: rbac, Namespace: f.account.Namespace, Resource: "rolebindings"}, "Their users are missing",
		func(b *rbacv1.RoleBinding) { rights.Bindings = append(rights.Bindings, *b) }); err != nil {
		return nil, err
	}
	if _, err = list(ctx, f, cluster.Listing{API: rbac, Resource: "clusterrolebindings"}, "Their users are missing",
		func(b *rbacv1.ClusterRoleBinding) { rights.ClusterBindings = append(rights.ClusterBindings, *b) }); err != nil {
		return nil, err
	}
	rights.Unknown(func(source access.Source, subjects []rbacv1.Subject) {
		names := make([]string, 0, len(subjects))
		for _, subject := range subjects {
			names = append(names, objects.SubjectText(subject))
		}
		f.note("what %s gives is not known: %s", source, wording.Some(names))
	})
	return rights, nil
}

// mode reads which mode the namespace has; unknown if the caller may not read it.
func (f *facts) mode(ctx context.Context) (string, error) {
	var namespace metav1.PartialObjectMetadata
	err := f.api.Get(ctx, &namespace, cluster.Place{Resource: "namespaces", Name: f.account.Namespace})
	switch {
	case apierrors.IsForbidden(err):
		f.note("namespace %s was not read: you may not get it, so its label %s is not known", f.account.Namespace, access.ModeLabel)
		return "unknown", nil
	case err != nil:
		return "", err
	}
	return namespace.Labels[access.ModeLabel], nil
}

// tokens are the names of the Secrets with tokens of the account, without their contents.
func (f *facts) tokens(ctx context.Context) ([]string, error) {
	var names []string
	_, err := list(ctx, f, cluster.Listing{Namespace: f.account.Namespace, Resource: "secrets", Metadata: true, Fields: "type=" + string(corev1.SecretTypeServiceAccountToken)},
		"Users who read token Secrets of the account are missing", func(s *metav1.PartialObjectMetadata) {
			if s.Annotations[corev1.ServiceAccountNameKey] == f.account.Name {
				names = append(names, s.Name)
			}
		})
	return names, err
}

// worth is what an account may use: what becoming it gives.
type worth struct {
	WorkloadIdentities  []string `json:"workloadIdentities"`
	GMSACredentialSpecs []string `json:"gmsaCredentialSpecs"`
}

func (f *facts) worth(ctx context.Context, rights *access.Rights) (worth, error) {
	found := worth{[]string{}, []string{}}
	_, err := list(ctx, f, cluster.Identities(f.account.Namespace), "Those that the account may use are missing", func(i *v1alpha1.WorkloadIdentity) {
		if rights.MayUse(f.account, v1alpha1.GroupName, "workloadidentities", i.Name) {
			found.WorkloadIdentities = append(found.WorkloadIdentities, i.Name)
		}
	})
	if err != nil {
		return found, err
	}
	specs := cluster.Listing{API: "/apis/" + windowsv1.GroupName + "/v1", Resource: windowsv1.ResourceName, Metadata: true}
	_, err = list(ctx, f, specs, "Those that the account may use are missing", func(s *metav1.PartialObjectMetadata) {
		if rights.MayUse(f.account, windowsv1.GroupName, windowsv1.ResourceName, s.Name) {
			found.GMSACredentialSpecs = append(found.GMSACredentialSpecs, s.Name)
		}
	})
	return found, err
}

// modeText words a mode.
func modeText(mode string) string {
	switch mode {
	case "":
		return "none: users need no right to use an account"
	case "audit":
		return "audit: users without the right are recorded in the audit log"
	case "warn":
		return "warn: users without the right are warned, and recorded in the audit log"
	case access.Enforce:
		return "enforce: users without the right are refused"
	}
	return mode
}
