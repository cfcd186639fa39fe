package login_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// workstation is the machine of a person: a home with nothing in it but a kubeconfig, a terminal, and a browser that opens.
type workstation struct {
	person
	provider   *provider
	cluster    *cluster
	home       string
	kubeconfig string
	terminal   *os.File
	// noDisplay: no browser can be opened here.
	noDisplay bool
}

// newWorkstation makes one of a person who does something in the browser, and has a kubeconfig for the cluster, without credentials.
func newWorkstation(t *testing.T, does string) *workstation {
	t.Helper()
	needPrograms(t)
	needBuild(t)
	d := &workstation{person: person{t: t, does: does}, provider: theProvider(t), home: t.TempDir(), terminal: newTerminal(t)}
	var err error
	if d.cluster, err = sharedCluster(); err != nil {
		t.Fatal(err)
	}
	d.kubeconfig = filepath.Join(d.home, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["work"] = &clientcmdapi.Cluster{Server: d.cluster.admin.Host, CertificateAuthorityData: d.cluster.admin.CAData}
	config.Contexts["work"] = &clientcmdapi.Context{Cluster: "work"}
	config.CurrentContext = "work"
	testkit.Must(t, clientcmd.WriteToFile(*config, d.kubeconfig))
	d.putBrowser()
	return d
}

// putBrowser puts a program in the home that opens pages, for the test to visit.
func (d *workstation) putBrowser() {
	d.t.Helper()
	bin, addresses := filepath.Join(d.home, "bin"), filepath.Join(d.home, "addresses")
	script := "#!/bin/sh\nprintf '%s\\n' \"$1\" > '" + addresses + "'\n"
	testkit.Must(d.t, errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700), syscall.Mkfifo(addresses, 0o600)))
	// Both ends of the pipe: it does not end with the first that writes.
	pipe := testkit.Need(os.OpenFile(addresses, os.O_RDWR, 0))(d.t)
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			d.open(lines.Text())
		}
	})
	d.t.Cleanup(func() {
		_ = pipe.Close()
		reading.Wait()
		d.visits.Wait()
	})
}

// environment is that of a program that the person starts.
func (d *workstation) environment() []string {
	replaced := []string{"HOME", "PATH", "KUBECONFIG", "XDG_CACHE_HOME", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"}
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(replaced, name)
	})
	environment = append(environment,
		"HOME="+d.home, "KUBECONFIG="+d.kubeconfig, "XDG_CACHE_HOME="+filepath.Join(d.home, "cache"),
		"PATH="+strings.Join([]string{filepath.Join(d.home, "bin"), filepath.Dir(controlplane.Program("credence")), os.Getenv("PATH")}, ":"),
	)
	if !d.noDisplay {
		environment = append(environment, "DISPLAY=:0")
	}
	return environment
}

// outcome is how a program ended.
type outcome struct {
	out, err string
	code     int
}

func (o outcome) String() string { return fmt.Sprintf("exit code %d\n%s%s", o.code, o.out, o.err) }

// run runs a program of the build at the terminal; the person reads its output meanwhile.
func (d *workstation) run(name string, args ...string) outcome {
	d.t.Helper()
	return d.runWith(d.terminal, name, args...)
}

// runWith is run with another standard input; nil: nothing.
func (d *workstation) runWith(input *os.File, name string, args ...string) outcome {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), controlplane.Program(name), args...)
	cmd.Env, cmd.Dir = d.environment(), d.home
	if input != nil {
		cmd.Stdin = input
	}
	var out bytes.Buffer
	said := &reading{person: &d.person}
	cmd.Stdout, cmd.Stderr = &out, said
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		d.t.Errorf("%s: %v", name, err)
		return outcome{code: -1}
	}
	return outcome{out.String(), said.all.String(), cmd.ProcessState.ExitCode()}
}

// must runs a program that has to succeed, and returns what it printed.
func (d *workstation) must(name string, args ...string) string {
	d.t.Helper()
	got := d.run(name, args...)
	if got.code != 0 {
		d.t.Fatalf("%s %s: %s", name, strings.Join(args, " "), got)
	}
	return got.out
}

// reading is the standard error of a program, which the person reads line by line.
type reading struct {
	person    *person
	all, line bytes.Buffer
}

func (r *reading) Write(text []byte) (int, error) {
	r.all.Write(text)
	for _, c := range text {
		if c != '\n' {
			r.line.WriteByte(c)
			continue
		}
		r.person.read(r.line.String())
		r.line.Reset()
	}
	return len(text), nil
}

// waitFor waits until a condition holds; it gives up after what no machine needs and reports the last complaint.
func waitFor(t *testing.T, condition func() error) {
	t.Helper()
	testkit.Wait(t, func(context.Context) error { return condition() })
}
