// Package namespaces makes namespaces what the NamespaceTemplates that select them have: labels, service accounts with profiles, RoleBindings. In
// go templates and the metadata of namespaces; out come objects, by server-side apply with a field manager of its own, and the status of each
// template. Fields of others are reported and left as they are, labels are never softened, and nothing is deleted.
package namespaces
