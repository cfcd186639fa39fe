// Package identity is "credence identity": what is done about WorkloadIdentities that kubectl has no command for. In go the name of one;
// out comes a changed object. It decides nothing itself.
package identity
