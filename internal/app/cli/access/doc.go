// Package access is "credence access": who may use a service account, and who can become it. In go names and audit logs; out come Roles and
// RoleBindings, written to the cluster or printed, and lists of subjects. The rules are those of internal/access.
package access
