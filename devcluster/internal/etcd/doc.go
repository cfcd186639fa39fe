// Package etcd is the cluster's storage: one real etcd member in this process.
//
// In goes a data directory; out comes the URL of a unix socket that
// kube-apiserver takes as --etcd-servers. Every write is on disk before it is
// acknowledged. It never opens a TCP port.
package etcd
