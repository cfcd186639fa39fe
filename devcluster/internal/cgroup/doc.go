// Package cgroup is the one place in the kernel's control groups that a node of ours has for its pods. Linux only.
//
// In go a name; out come directories of that name at the top of every hierarchy, and their end with all processes in them.
// It never looks at a group that is not below one of that name.
package cgroup
