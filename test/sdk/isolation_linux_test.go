package sdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/test/sdk/sts"
)

// isolatedVariable marks the second run of the test binary, which has namespaces of its own.
const isolatedVariable = "CREDENCE_SDK_ISOLATED"

// isolate runs the test binary once more, in a network and a file system of its own: the SDKs are to use the host names, the
// port and the paths that they use in a pod. done is false where the tests go on in this process, in the second run or for
// want of the right to make namespaces.
func isolate() (code int, done bool, err error) {
	if os.Getenv(isolatedVariable) != "" {
		err := prepare()
		if errors.Is(err, os.ErrPermission) {
			return 0, false, os.Unsetenv(isolatedVariable)
		}
		return 0, false, err
	}
	const own = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET
	code, err = again(&syscall.SysProcAttr{Cloneflags: own})
	if errors.Is(err, os.ErrPermission) {
		// Many systems let any user be root of their own namespaces.
		code, err = again(&syscall.SysProcAttr{
			Cloneflags:  own | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		})
		if err != nil {
			return 0, false, nil
		}
	}
	return code, err == nil, err
}

// again runs this program with the same arguments. The error is that of starting it.
func again(attributes *syscall.SysProcAttr) (code int, err error) {
	// The other one ends with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attributes.Pdeathsig = syscall.SIGKILL
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), isolatedVariable+"=1")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = attributes
	err = command.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// requireIsolation skips a test that could not have the clouds' names.
func requireIsolation(t *testing.T) {
	t.Helper()
	if os.Getenv(isolatedVariable) == "" {
		t.Skip("needs CAP_SYS_ADMIN: the clouds' host names, port 443 and /var/run exist for the tests in namespaces of their own; run them as root")
	}
}

// prepare gives the names of the clouds and of the issuer to the loopback interface, and makes /var/run an empty folder.
func prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	run, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", run, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", run, err)
	}
	names := append(sts.New(sts.Settings{}).Hosts(), issuerHost, storeHost, "localhost")
	hosts := filepath.Join(run, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 "+strings.Join(names, " ")+"\n"), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /etc/hosts: %w", err)
	}
	return startLoopback()
}

func startLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	return nil
}
