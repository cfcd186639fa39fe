package clitest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptNow is the time of the clock of every script.
const scriptNow = "2026-07-01T12:00:00Z"

// Now returns the time of the clock of every script.
func Now() time.Time {
	now, err := time.Parse(time.RFC3339, scriptNow)
	if err != nil {
		panic(err)
	}
	return now
}

// Run runs the scripts of the folder testdata. Besides the commands of testscript, they have:
//
//	credence ARGUMENT...          runs a command in the test process; kubectl-credence likewise
//	exits CODE COMMAND...         runs a command that must end with this exit code: one of those, or another program
//	exits CODE exec PROGRAM...    the same, in a process of its own
//	input FILE                    standard input of the next command in the test process
//	start NAME...                 starts servers: see servers
//	ring ...                      makes a ring of keys: see makeRing
//	notoken                       checks that the output of the last command shows no token
//
// A script that starts programs of its own by exec needs Main.
func Run(t *testing.T) {
	t.Helper()
	folder, err := filepath.Abs("testdata") // commands of other scripts change the working directory meanwhile
	if err != nil {
		t.Fatal(err)
	}
	names, kubectl := variables(t, folder), stockKubectl(folder)
	path := os.Getenv("PATH")
	testscript.Run(t, testscript.Params{
		Dir: folder,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", path)
			env.Setenv("GORACE", "atexit_sleep_ms=10") // a program with the race detector waits for a second before it ends
			env.Setenv("NOW", scriptNow)
			env.Setenv("DOLLAR", "$")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Values[stateKey{}] = &state{variables: names, kubectl: kubectl, ring: &ringFake{directory: filepath.Join(env.WorkDir, "ring-of-cluster")}}
			return nil
		},
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "root": // this process may give files to others
				return os.Geteuid() == 0, nil
			case "stock": // make build has installed kubectl
				return isFile(kubectl), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"credence":         func(ts *testscript.TestScript, neg bool, args []string) { runHere(ts, neg, "credence", args) },
			"kubectl-credence": func(ts *testscript.TestScript, neg bool, args []string) { runHere(ts, neg, "kubectl-credence", args) },
			"exits":            exits,
			"input":            setInput,
			"notoken":          noToken,
			"ring":             makeRing,
			"start":            start,
		},
	})
}

// state is what a script has besides its files and variables.
type state struct {
	variables []string // that commands in the test process see
	kubectl   string   // the path of the stock kubectl, which may not be there
	input     string   // of the next command in the test process
	ring      *ringFake
	started   map[string]bool
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *state { return ts.Value(stateKey{}).(*state) }

// exits CODE COMMAND... runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE [exec] COMMAND...")
	}
	want, command := args[0], args[1:]
	var got int
	switch command[0] {
	case "credence", "kubectl-credence":
		got = here(ts, command[0], command[1:])
	case "exec":
		got = process(ts, command[1:])
	default:
		got = process(ts, command)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

// process runs a program, and returns its exit code.
func process(ts *testscript.TestScript, command []string) int {
	if len(command) == 0 {
		ts.Fatalf("usage: exits CODE exec PROGRAM...")
	}
	err := ts.Exec(command[0], command[1:]...)
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok { // the time of all tests is over
		ts.Fatalf("%v", err)
	}
	return exit.ExitCode()
}

// setInput FILE sets the standard input of the next command in the test process.
func setInput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: input FILE")
	}
	stateOf(ts).input = ts.ReadFile(args[0])
}

// noToken holds the output of the last command to the rule that it shows no token, whole or in its telling part.
func noToken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: notoken")
	}
	if !stateOf(ts).started["issuer"] {
		ts.Fatalf("there are no tokens: start issuer")
	}
	for _, name := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(name)
		for _, variable := range tokenVariables() {
			token := ts.Getenv(variable)
			if token == "" {
				continue // its server is not started
			}
			signature := token[strings.LastIndex(token, ".")+1:]
			if strings.Contains(text, token) || strings.Contains(text, signature) {
				ts.Fatalf("%s shows the token $%s", name, variable)
			}
		}
	}
}

func tokenVariables() []string {
	return []string{"TOKEN", "EXPIRED", "FOREIGN", "OLD_KEY", "EVERYTHING", "ESCAPES", "TEAM_TOKEN", "BOUND"}
}
