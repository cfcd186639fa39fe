// Package agent wires the program credence-server agent: it keeps Secrets of a workload cluster filled with tokens of an
// identity cluster. In go flags, out comes a process that does so while it is the leader. It decides nothing itself (packages
// delivery and delivery/renewal do), and signs nothing.
package agent
