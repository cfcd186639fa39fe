// Package tunnel carries TCP connections through a unix socket, by HTTP CONNECT: between processes that have different networks but
// see the same files.
//
// In go a listener and the function that connects on its side; Dial is the other side. It never decides which addresses may be
// reached.
package tunnel
