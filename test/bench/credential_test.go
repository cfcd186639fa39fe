package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain is main as far as this program is a process that it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && peers[os.Args[1]] != nil {
		exitOn(peers[os.Args[1]](os.Args[2:], os.Stdin, os.Stdout))
		return
	}
	os.Exit(m.Run())
}

// A part that needs no plane is measured without one, and its error names a missing program.
func TestPartsAlone(t *testing.T) {
	dir := t.TempDir()
	s := settings{bin: dir, out: filepath.Join(dir, "table"), only: "credential", round: time.Second, pause: time.Second, rounds: 2, secrets: 100}
	err := run(t.Context(), s)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "measure credential: ") || !strings.Contains(err.Error(), "credence-credential") {
		t.Errorf("error %v, want that the small program is not there", err)
	}
	for _, name := range []string{"credence", "credence-credential"} {
		const text = "#!/bin/sh\ntest $1 = credential && echo '{\"status\":{\"token\":\"kept\"}}'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(s.out)
	if got := strings.Count(string(table), "provider with a kept token"); got != 3 {
		t.Errorf("%d rows, want 3 (%v):\n%s", got, err, table)
	}
	for _, name := range []string{"start", "execcredential", "tokens"} {
		if !strings.Contains(partNames(), name) {
			t.Errorf("%s is not among %s", name, partNames())
		}
	}
}

func TestEachIsTheFirstAsOften(t *testing.T) {
	list := []provider{{name: "a"}, {name: "b"}, {name: "c"}}
	seen := map[string]int{}
	for round := range 60 {
		order := ""
		for _, p := range inTurn(list, round) {
			order += p.name
		}
		seen[order]++
	}
	if len(seen) != 6 {
		t.Errorf("orders %v, want all six", seen)
	}
	for order, times := range seen {
		if times != 10 {
			t.Errorf("%s %d times, want 10", order, times)
		}
	}
}

// The time over the program true is computed within a round, as all are slow together.
func TestStartRows(t *testing.T) {
	ms := func(list ...int) (all []time.Duration) {
		for _, v := range list {
			all = append(all, time.Duration(v)*time.Millisecond)
		}
		return all
	}
	rows := startProviderRows(ms(26, 4, 5), ms(20, 30, 40), ms(21, 1, 1))
	if rows[0].ours != 5 || rows[0].theirs != 1 || rows[1].ours != 4 || rows[2].ours != 30 || rows[2].theirs != 1 {
		t.Errorf("%+v", rows)
	}
	if got := rows[1].cells()[5]; got != "≤ 1: met" {
		t.Errorf("4 ms over: %s", got)
	}
	if got := startProviderRows(ms(7), ms(9), ms(1))[1].cells()[5]; got != "≤ 1: MISSED" {
		t.Errorf("6 ms over: %s", got)
	}
}

func TestStartOnce(t *testing.T) {
	if _, err := exec.LookPath(nothing); err != nil {
		t.Skip("there is no program that does nothing: ", err)
	}
	program := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		command, err := json.Marshal([]string{path, "x"})
		if err != nil {
			t.Fatal(err)
		}
		return string(command)
	}
	const serves = `case "$KUBERNETES_EXEC_INFO" in *client.authentication.k8s.io/v1*) echo '{"status":{"token":"kept"}}';; esac`
	var out bytes.Buffer
	if err := startOnce([]string{program(nothing, ":"), program("it", serves)}, nil, &out); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	if err := json.Unmarshal(out.Bytes(), &took); err != nil || len(took) != 2 || took[0] <= 0 || took[1] <= 0 {
		t.Errorf("%s: %v", out.Bytes(), err)
	}
	for text, arg := range map[string]string{
		"something else": program("it", `echo '{"status":{"token":"other"}}'`),
		"no server":      program("it", "echo no server >&2; exit 1"),
		"a JSON array":   "it",
	} {
		if err := startOnce([]string{arg}, nil, &out); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want %q", arg, err, text)
		}
	}
}
