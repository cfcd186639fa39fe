// Package up runs Credence on one machine: credence up, down and status. In go a directory and a first port, out come a
// Kubernetes cluster, the aggregated API server and the discovery server as separate processes, wired as in production, and
// the files that tell others where they are. It is wiring only: the table of components is in components.go, the order of a
// start in start.go. It never listens beyond 127.0.0.1, never skips a verification and never prints a token or a key.
package up
