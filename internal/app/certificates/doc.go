// Package certificates wires the program credence-server certificates: it makes, renews and hands out the serving certificates of an
// installation. In go flags, out comes a process that does so. It decides nothing itself (package certificates does).
package certificates
