// Package kubeproxy is the real kube-proxy, run as a child process of this same binary. Linux only.
//
// In go Settings; out come the child's arguments. It changes the packet filter of the network namespace that it runs in, and no
// setting of the whole kernel.
package kubeproxy
