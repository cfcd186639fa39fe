//go:build unix

package signer

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/test/testkit"
)

func TestFlagsThatAreRefused(t *testing.T) {
	dir := filepath.Dir(externalsignertest.Socket(t))
	open := filepath.Join(dir, "open")
	testkit.Must(t, os.Mkdir(open, 0o755))
	busy := testkit.Need(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = busy.Close() })
	busyPort := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	good := map[string]string{"--issuer": testIssuer, "--keys-dir": filepath.Join(dir, "keys"), "--socket": filepath.Join(dir, "run", "socket")}
	for name, test := range map[string]struct {
		flag, value string
		want        []string
	}{
		"no issuer":                 {"--issuer", "", []string{"--issuer is missing"}},
		"no keys":                   {"--keys-dir", "", []string{"--keys-dir is missing"}},
		"keys that others may read": {"--keys-dir", open, []string{"--keys-dir", open, "chmod 700"}},
		"no socket":                 {"--socket", "", []string{"--socket is missing"}},
		"a past beside the keys":    {"--past-file", filepath.Join(dir, "keys", "past.json"), []string{"--past-file", "is in --keys-dir"}},
		"a past in no folder":       {"--past-file", filepath.Join(dir, "nowhere", "past.json"), []string{"--past-file", "nowhere"}},
		"a past that is a folder":   {"--past-file", open, []string{"--past-file", open}},
		"a relative socket":         {"--socket", "socket", []string{"--socket", "absolute"}},
		"a socket for all":          {"--socket", filepath.Join(open, "socket"), []string{"--socket", open, "chmod 700"}},
		"an unknown algorithm":      {"--algorithm", "ES384", []string{"--algorithm", "ES384", "RS256"}},
		"a busy port":               {"--health-port", busyPort, []string{"--health-port " + busyPort, "in use"}},
		"an invalid port":           {"--health-port", "65536", []string{"--health-port 65536"}},
		"short tokens":              {"--token-max-duration", "9m", []string{"--token-max-duration 9m", "10m"}},
		"settings that contradict":  {"--key-rotation-period", "1h", []string{"rotation period 1h", "publish period 24h"}},
		"a publish period":          {"--key-publish-period", "1s", []string{"publish period 1s"}},
		"staleness":                 {"--keys-staleness", "1s", []string{"--keys-staleness 1s", "2s"}},
		"negative leeway":           {"--key-leeway", "-1s", []string{"leeway"}},
		"skew with parts":           {"--clock-skew", "1500ms", []string{"clock skew", "whole seconds"}},
		"an unknown log level":      {"--log-level", "loud", []string{"--log-level"}},
		"an argument":               {"x", "y", []string{"unknown command"}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := map[string]string{test.flag: test.value}
			for flag, value := range good {
				if flag != test.flag {
					flags[flag] = value
				}
			}
			var args []string
			for flag, value := range flags {
				if value != "" {
					args = append(args, flag, value)
				}
			}
			refused(t, args, test.want...)
		})
	}
}

// refused runs the command, and fails unless it ends with one line with the reason.
func refused(t *testing.T, args []string, want ...string) {
	t.Helper()
	// Without a refusal the command runs until its context is done, without error.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var printed bytes.Buffer
	command := NewCommand()
	command.SetOut(&printed)
	command.SetErr(&printed)
	command.SetArgs(args)
	command.SilenceErrors = true
	err := command.ExecuteContext(ctx)
	if err == nil {
		t.Fatal("it ran")
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not have %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(printed.String(), "Usage:") {
		t.Errorf("the error is not one line:\n%v\n%s", err, printed.String())
	}
}
