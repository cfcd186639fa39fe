// Package connection finds the cluster that a command line names, as kubectl does, and words what its API refuses. In go flags, kubeconfigs
// and errors of the API; out come a cluster to talk to, completions, and failures with what to do about them. It sends no request but
// those of completion.
package connection
