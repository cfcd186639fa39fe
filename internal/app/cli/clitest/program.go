package clitest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/test/testkit"
)

// Main runs the tests of a package whose tests or scripts start credence, kubectl-credence or credence-credential as processes: they are
// in the first folder of PATH.
func Main(m *testing.M) {
	if program, ok := programs()[filepath.Base(os.Args[0])]; ok {
		program()
		return
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		// A kubeconfig names the program that wrote it, which is this one if that ran in the test process.
		fmt.Fprintf(os.Stderr, "%s is no program of scripts: write kubeconfigs by exec credence\n", os.Args[0])
		os.Exit(97)
	}
	os.Exit(withPrograms(m))
}

func programs() map[string]func() {
	return map[string]func(){
		"credence" + exe:         program,
		"kubectl-credence" + exe: program,
		// The small program, with the same clock.
		"credence-credential" + exe: func() { os.Exit(provider.Run(os.Args[1:], os.Stdout, os.Stderr, Now)) },
	}
}

// withPrograms runs tests with links to their own program in PATH, by which it is the programs, and returns the exit code.
func withPrograms(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp(filepath.Dir(self), "programs")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for name := range programs() {
		if err := os.Link(self, filepath.Join(folder, name)); err != nil {
			panic(err)
		}
	}
	if err := os.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	return m.Run()
}

func program() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Run(context.Background(), cli.New(streams, options(os.Args[0], os.Getenv)), os.Args[1:]))
}

// options are those of the program as scripts run it: with a clock that stands still, or runs from there or is the real one if they set so.
// The program notes what is waited for never, however slow the machine is, or at once if they set so. Nor does it give up a completion.
func options(name string, getenv func(string) string) cli.Options {
	options := cli.Options{Program: name, Clock: Now, CompletionTimeout: 5 * time.Minute, Limiter: flowcontrol.NewFakeAlwaysRateLimiter()}
	switch getenv("CLOCK_RUNS") {
	case "":
	case "real":
		options.Clock = time.Now
	default:
		started := time.Now()
		options.Clock = func() time.Time { return Now().Add(time.Since(started)) }
	}
	impatient := getenv("IMPATIENT") != ""
	options.After = func(_ time.Duration, f func()) func() bool {
		if impatient {
			f()
		}
		return func() bool { return !impatient }
	}
	return options
}

// assigned matches the variables that a script sets.
var assigned = regexp.MustCompile(`(?m)^(?:\[[^]]*\] *)?env (\w+)=`)

// variables returns the names of the variables that commands see: those that are set for every script or by one of a folder.
func variables(t *testing.T, folder string) []string {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s (%v)", folder, err)
	}
	names := map[string]bool{"HOME": true, "KUBECONFIG": true, "PATH": true, "TMPDIR": true}
	for _, script := range scripts {
		text := testkit.Need(os.ReadFile(script))(t)
		for _, match := range assigned.FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// processWide is held while a command has the environment and the working directory of this process.
var processWide sync.Mutex

// runHere runs a command in the test process. It must succeed, or fail if neg is true.
func runHere(ts *testscript.TestScript, neg bool, name string, args []string) {
	switch code := here(ts, name, args); {
	case neg && code == 0:
		ts.Fatalf("unexpected command success")
	case !neg && code != 0:
		ts.Fatalf("exit code %d", code)
	}
}

// here runs a command in the test process with the environment and the working directory of a script, and returns its exit code.
func here(ts *testscript.TestScript, name string, args []string) int {
	state := stateOf(ts)
	streams := genericiooptions.IOStreams{In: strings.NewReader(state.input), Out: ts.Stdout(), ErrOut: ts.Stderr()}
	state.input = ""
	processWide.Lock()
	defer processWide.Unlock()
	environment := os.Environ()
	defer setEnvironment(ts, environment)
	before, err := os.Getwd()
	ts.Check(err)
	folder := ts.MkAbs(".")
	ts.Check(os.Chdir(folder))
	defer func() { ts.Check(os.Chdir(before)) }()
	own := []string{"PWD=" + folder}
	for _, name := range state.variables {
		if value := ts.Getenv(name); value != "" {
			own = append(own, name+"="+value)
		}
	}
	setEnvironment(ts, own)
	return cli.Run(context.Background(), cli.New(streams, options(name, ts.Getenv)), args)
}

func setEnvironment(ts *testscript.TestScript, variables []string) {
	os.Clearenv()
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		ts.Check(os.Setenv(name, value))
	}
}
