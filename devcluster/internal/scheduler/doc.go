// Package scheduler is the real kube-scheduler, run as a child process of this same binary.
//
// In go Settings; out come the child's arguments. It never takes part in an election: it is the only one of its cluster.
package scheduler
