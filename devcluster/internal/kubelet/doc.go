// Package kubelet is the real kubelet, run as a child process of this same binary. Linux only.
//
// In go Settings; out come the child's arguments and its configuration file. Everything that it keeps is in the folder that
// it is given, save for MachineFolders, in place of which the caller mounts others; its control groups are below one of its
// own; it listens on 127.0.0.1 only. Another kubelet of this machine, and what that one runs, are never touched.
package kubelet
