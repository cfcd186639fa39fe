// Package controller wires the program credence-server controller: it rotates the keys of an issuer, and shows them in
// the KeyRing. In go flags, out comes a process that keeps the ring while it is the leader. It decides nothing about keys
// (package keys does), and signs nothing.
package controller
