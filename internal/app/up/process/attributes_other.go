//go:build unix && !linux

package process

import "syscall"

// childAttributes keeps a terminal's Ctrl-C from the child. Only Linux can tie a child's life to its parent's; elsewhere
// the next start ends what a killed supervisor left.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// ChildrenDieWithParent reports whether the kernel ends the processes of a Launcher when this one is killed.
const ChildrenDieWithParent = false
