// Package apiserver is the real kube-apiserver, run in this process.
//
// In go its settings and an open listener; Run serves until its context ends.
// It configures nothing that upstream would not accept on the command line, and
// installs no signal handler: when it stops is its caller's business.
package apiserver
