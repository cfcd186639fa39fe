package child

import "syscall"

func attributes(spec Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: spec.Apart}
	if spec.Program != "" {
		a.Pdeathsig = syscall.SIGKILL
	}
	if spec.Namespaces {
		// Go makes all mounts private with it.
		a.Unshareflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET
	}
	return a
}
