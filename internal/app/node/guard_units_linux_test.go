package node_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/test/testkit"
)

// shipped is the folder of the guard's units.
const shipped = "../../../deploy/options"

// installed is a script, in mounts of its own, that puts the program where an admin installs it. $1 is the program.
const installed = `set -e
mount -t tmpfs none /usr/local/bin
touch /usr/local/bin/credence-node
mount --bind "$1" /usr/local/bin/credence-node
`

// booted is a script that has systemd start what is in a folder, and leave the machine's settings alone. $2 has the runtime's socket, $3 is the folder.
const booted = installed + `mount -t tmpfs none /run
mkdir /run/containerd
mount --bind "$2" /run/containerd
mount -t cgroup2 none /sys/fs/cgroup
mount --bind /etc /etc
mount -o remount,bind,ro /etc
export container=credence SYSTEMD_UNIT_PATH="$3"
exec /lib/systemd/systemd --system --unit=multi-user.target
`

// units are the guard's, in a folder with the targets of a host that they name.
func units(t *testing.T, folder string) {
	t.Helper()
	write := func(name string, content []byte) {
		t.Helper()
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), content, 0o644))
	}
	for _, name := range []string{"credence-guard.service", "credence-guard.socket"} {
		content := testkit.Need(os.ReadFile(filepath.Join(shipped, name)))(t)
		write(name, content)
	}
	for _, name := range []string{"sysinit", "basic", "shutdown", "sockets"} {
		write(name+".target", []byte("[Unit]\nDefaultDependencies=no\n"))
	}
	write("multi-user.target", []byte("[Unit]\nDefaultDependencies=no\nWants=credence-guard.socket credence-guard.service\n"))
}

// dropIn adds the drop-in for reviews, as it is shipped.
func dropIn(t *testing.T, folder string) {
	t.Helper()
	content := testkit.Need(os.ReadFile(filepath.Join(shipped, "credence-guard-reviews.conf")))(t)
	of := filepath.Join(folder, "credence-guard.service.d")
	testkit.Must(t, os.Mkdir(of, 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(of, "reviews.conf"), content, 0o644))
}

func needSystemd(t *testing.T) {
	t.Helper()
	for _, program := range []string{"systemd-analyze", "systemctl", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: install the packages systemd and util-linux", program)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/usr/local/bin").CombinedOutput(); err != nil {
		t.Skipf("only root mounts file systems: %v: %s", err, out)
	}
}

// systemd finds nothing wrong with the units, and does with changed ones.
func TestUnitsOfTheGuard(t *testing.T) {
	needSystemd(t)
	own := testkit.Need(os.Executable())(t)
	for name, test := range map[string]struct {
		file, from, to string
		want           string // empty: nothing
	}{
		"as shipped":                {"", "", "", ""},
		"a key that does not exist": {"credence-guard.service", "ProtectHome=", "ProtectHouse=", "ProtectHouse"},
		"an invalid value":          {"credence-guard.service", "ProtectSystem=strict", "ProtectSystem=stricter", "stricter"},
		"a program that is not there": {"credence-guard.service.d/reviews.conf", "/usr/local/bin/credence-node ", "/usr/local/bin/credence-guard ",
			"/usr/local/bin/credence-guard is not executable"},
		"a key of the socket":  {"credence-guard.socket", "ListenStream=", "ListenStreams=", "ListenStreams"},
		"a key of the drop-in": {"credence-guard.service.d/reviews.conf", "ReadWritePaths=", "ReadWriteFolders=", "ReadWriteFolders"},
		"a second command":     {"credence-guard.service.d/reviews.conf", "ExecStart=\n", "", "more than one ExecStart="},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			units(t, folder)
			dropIn(t, folder)
			if test.file != "" {
				path := filepath.Join(folder, test.file)
				content := testkit.Need(os.ReadFile(path))(t)
				changed := strings.Replace(string(content), test.from, test.to, 1)
				if changed == string(content) {
					t.Fatalf("%s has no %q", test.file, test.from)
				}
				testkit.Must(t, os.WriteFile(path, []byte(changed), 0o644))
			}
			verify := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", installed+`cd "$2" && SYSTEMD_UNIT_PATH="$2" systemd-analyze verify --man=no --generators=no ./credence-guard.service ./credence-guard.socket`, "sh", own, folder)
			output, err := verify.CombinedOutput()
			if test.want == "" && (err != nil || len(output) > 0) || !strings.Contains(string(output), test.want) {
				t.Errorf("%v, %s, want %q", err, output, test.want)
			}
		})
	}
}

// cgroup2 makes a control group for a systemd of a test, which is removed with all that this has made in it.
func cgroup2(t *testing.T) *os.File {
	t.Helper()
	mounts := testkit.Need(os.ReadFile("/proc/self/mountinfo"))(t)
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, " - cgroup2 ") {
			continue
		}
		made, err := os.MkdirTemp(strings.Fields(line)[4], "credence-systemd-")
		if err != nil {
			t.Skipf("no control group can be made: %v", err)
		}
		t.Cleanup(func() {
			testkit.Wait(t, func(context.Context) error {
				var folders []string
				_ = filepath.WalkDir(made, func(path string, entry os.DirEntry, err error) error {
					if err == nil && entry.IsDir() {
						folders = append(folders, path)
					}
					return nil
				})
				for i := len(folders) - 1; i >= 0; i-- {
					if err := syscall.Rmdir(folders[i]); err != nil {
						return fmt.Errorf("remove %s: %w", folders[i], err)
					}
				}
				return nil
			})
		})
		opened, err := os.Open(made)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = opened.Close() })
		return opened
	}
	t.Skip("there are no control groups of version 2")
	return nil
}

// processIn is the one process of a control group.
func processIn(t *testing.T, group string) (pid int) {
	t.Helper()
	testkit.Wait(t, func(context.Context) error {
		content, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if err != nil {
			return err
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(content)))
		return err
	})
	return pid
}

// systemd starts the guard by its units, holds its socket, and starts it again when it was killed: the kubelet's calls wait. The guard has no rights, and no
// network and no folder to write to but by the drop-in for reviews.
func TestGuardUnderSystemd(t *testing.T) {
	needSystemd(t)
	group := cgroup2(t)
	own := testkit.Need(os.Executable())(t)
	folder, runtimeFolder := t.TempDir(), filepath.Dir(guardConfig(t).Runtime)
	units(t, folder)
	(&fakeRuntime{}).serve(t, filepath.Join(runtimeFolder, "containerd.sock"))

	host := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts", "--ipc", "--cgroup",
		"sh", "-c", booted, "sh", own, runtimeFolder, folder)
	var output strings.Builder
	host.Stdout, host.Stderr = &output, &output
	host.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	testkit.Must(t, host.Start())
	t.Cleanup(func() {
		_ = host.Process.Kill()
		_ = host.Wait()
		if t.Failed() {
			t.Logf("systemd: %s", output.String())
		}
	})
	systemd := processIn(t, filepath.Join(group.Name(), "init.scope"))
	service := filepath.Join(group.Name(), "system.slice", "credence-guard.service")
	connection := testkit.Need(dialGuard(fmt.Sprintf("/proc/%d/root/run/credence/guard.sock", systemd)))(t)
	defer connection.Close()
	kubelet := runtime.NewRuntimeServiceClient(connection)
	version := func(when string) {
		t.Helper()
		testkit.Wait(t, func(ctx context.Context) error {
			answer, err := kubelet.Version(ctx, &runtime.VersionRequest{})
			if err == nil && answer.GetRuntimeVersion() != "2.1.4+credence-guard" {
				t.Errorf("%s: %v", when, answer)
			}
			return err
		})
	}
	version("at the start")

	guard := processIn(t, service)
	status := testkit.Need(os.ReadFile(fmt.Sprintf("/proc/%d/status", guard)))(t)
	for _, want := range []string{"CapBnd:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), want+"\n") {
			t.Errorf("the guard's process has no %q: %s", want, status)
		}
	}
	network := func(pid int) string {
		t.Helper()
		namespace := testkit.Need(os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)))(t)
		return namespace
	}
	mayWrite := func(folder string) bool {
		return exec.Command("nsenter", "--target", strconv.Itoa(processIn(t, service)), "--mount", "--", "test", "-w", folder).Run() == nil
	}
	if network(guard) == network(systemd) {
		t.Error("the guard has the network of the host")
	}
	for _, folder := range []string{"/run/credence", "/var/lib"} {
		if mayWrite(folder) {
			t.Errorf("the guard may write into %s", folder)
		}
	}

	testkit.Must(t, syscall.Kill(guard, syscall.SIGKILL))
	version("after it was killed")
	if again := processIn(t, service); again == guard {
		t.Error("the guard that was killed is still there")
	}

	dropIn(t, folder)
	if out, err := exec.CommandContext(t.Context(), "nsenter", "--target", strconv.Itoa(systemd), "--all", "--", "sh", "-c", "systemctl daemon-reload && systemctl restart credence-guard.service").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	version("with reviews")
	if network(processIn(t, service)) != network(systemd) {
		t.Error("the guard has no network to reach the API")
	}
	if !mayWrite("/run/credence") {
		t.Error("the guard can't keep verdicts")
	}
	if mayWrite("/var/lib") {
		t.Error("with reviews the guard may write into /var/lib")
	}
}
