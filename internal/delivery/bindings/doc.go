// Package bindings decides in which namespaces of the workload cluster the agent has a right to Secrets, and the webhook one to pods.
// In go namespaces with their labels, out come RoleBindings of two ClusterRoles to one service account each: the Binder makes them,
// and the agent deletes those that are not needed any more. It reads Secrets only to see that they are gone.
package bindings
