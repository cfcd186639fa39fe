// Package containerd runs the machine's containerd program with a configuration, state and socket of our own. Linux only.
//
// In go a folder; out come a running runtime, what images it has, and the end of its pods. The containerd that
// the machine itself may run, its images and its containers are never touched: in place of MachineFolders the caller mounts
// others.
package containerd
