// Package binder wires the program credence-server binder: it lets the agent have the Secrets of the namespaces that tokens are
// delivered in. In go flags, out comes a process that does so. It decides nothing itself (package delivery/bindings does), and can
// read no Secret.
package binder
