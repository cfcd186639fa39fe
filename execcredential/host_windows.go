package execcredential

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/windows"
)

func samePath(a, b string) bool { return strings.EqualFold(a, b) }

func tooLarge(err error) bool { return errors.Is(err, windows.ERROR_FILENAME_EXCED_RANGE) }

func trusted(string) error {
	return errors.New("owner and mode can't be checked on Windows; use an allowlist with digests")
}

// processTree is a program and what it starts: a job.
type processTree struct {
	command *exec.Cmd
	job     windows.Handle
}

func newProcessTree(command *exec.Cmd, _ bool) *processTree { return &processTree{command: command} }

// begun puts the program into a job. Processes that it starts from then on are in the job too.
func (t *processTree) begun() error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(t.command.Process.Pid))
	if err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	t.job = job
	return nil
}

func (t *processTree) close() {
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
}

func (t *processTree) terminate() error {
	t.kill()
	return nil
}

func (t *processTree) kill() {
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
	} else if t.command.Process != nil {
		_ = t.command.Process.Kill()
	}
}

func signalOf(*os.ProcessState) string { return "" }

// systemLimits are those of CreateProcess, in characters: a command line, and a variable.
func systemLimits() limits { return limits{each: 32766, commandLine: 32766} }
