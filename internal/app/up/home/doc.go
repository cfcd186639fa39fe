// Package home is the directory in which one installation of Credence lives on one machine: where each file is, what is
// remembered between two starts (port, issuer), what is published to others (endpoints), which process holds it, and whether it can be
// used at all. In goes a path, out come paths, values and errors that name what is wrong and what to do. It never starts
// or ends a process and never reads or writes a private key's contents other than as bytes handed to it.
package home
