//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Spec is a program to run.
type Spec struct {
	Name string
	Path string
	Args []string
	// Folder is the working directory.
	Folder string
	// LogFile gets everything that the program prints; it is appended to.
	LogFile string
}

// Launcher starts processes from one thread that lives as long as this process: on Linux a child is set to die with the
// thread that started it (prctl(2), PR_SET_PDEATHSIG), and Go ends idle threads as it likes.
type Launcher struct{ work chan func() }

// NewLauncher returns a Launcher. It has no end: its thread must outlive every child.
func NewLauncher() *Launcher {
	l := &Launcher{work: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for work := range l.work {
			work()
		}
	}()
	return l
}

// Start runs spec. The process sees no stdin, and none of the variables that would point it at another cluster.
func (l *Launcher) Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.LogFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	command := exec.Command(spec.Path, spec.Args...)
	command.Dir = spec.Folder
	command.Env = environment(os.Environ())
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = childAttributes()

	result := make(chan error)
	l.work <- func() { result <- command.Start() }
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, command: command, logOffset: info.Size(), done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func environment(inherited []string) []string {
	return slices.DeleteFunc(slices.Clone(inherited), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "KUBERNETES_SERVICE_")
	})
}
