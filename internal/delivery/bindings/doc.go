// Package bindings decides in which namespaces of the workload cluster the agent has a right to Secrets, and the webhook one to pods.
// In go namespaces with their labels, out come RoleBindings of two ClusterRoles to one service account each: the Binder makes them,
// and the agent deletes those that are needed no more. It never reads Secrets but to see that there are none left.
package bindings
