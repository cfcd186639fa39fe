// Package dns is cluster DNS: the real CoreDNS, run as a child process of this same binary. Linux only.
//
// In go Settings; out come the child's arguments. It answers for the names of one cluster, and knows no other name server.
package dns
