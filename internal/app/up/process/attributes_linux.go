package process

import "syscall"

// childAttributes keeps a terminal's Ctrl-C from the child, and ends the child if the supervisor is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ChildrenDieWithParent reports whether the kernel ends the processes of a Launcher when this one is killed.
const ChildrenDieWithParent = true
