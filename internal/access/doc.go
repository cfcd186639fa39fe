// Package access is the rules of the verb use on service accounts: the Roles and RoleBindings that give it, and who may become an account.
// In go names, objects of RBAC and lines of an audit log; out come objects to write, and lists of subjects. It has no client.
package access
