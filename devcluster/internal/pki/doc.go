// Package pki is the cluster's public key infrastructure on disk.
//
// In goes a directory and the time; out come the paths of two certificate
// authorities (the cluster's and the front proxy's), of every certificate that
// a component serves or calls with, and of the service account key. Files that are
// there and still good are kept, others are made.
// Private keys never leave their files (mode 0600) and are never logged.
package pki
