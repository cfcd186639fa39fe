// Package registry wires credence-registry: in go flags, out comes a process that keeps passwords of registries fresh in Secrets. It decides
// nothing itself (package delivery/pullsecrets does), and is a program of its own so that the agent has no code that speaks to registries.
package registry
