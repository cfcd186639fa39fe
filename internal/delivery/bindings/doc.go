// Package bindings decides in which namespaces of the workload cluster the agent has a right to Secrets. In go namespaces with
// their labels, out come RoleBindings of one ClusterRole to one service account: the Binder makes them, and the agent gives those
// back that it needs no more. It never reads Secrets but to see that there are none left.
package bindings
