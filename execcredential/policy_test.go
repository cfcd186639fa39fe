package execcredential_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// Programs are found relative to the kubeconfig, and never relative to the current directory.
func TestCurrentDirectory(t *testing.T) {
	folder, current := t.TempDir(), t.TempDir()
	t.Chdir(current)
	write := func(folder, token string) {
		content := "#!/bin/sh\necho '" + withStatus(`{"token":"`+token+`"}`) + "'\n"
		must(t, os.WriteFile(filepath.Join(folder, "plugin"), []byte(content), 0o700))
	}
	write(folder, "folder")
	write(current, "current")
	pool, _ := newPool(t, execcredential.Options{})
	config := execcredential.Config{Command: "./plugin", APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, Folder: folder}
	got, err := sourceOf(t, pool, config).Get(t.Context())
	if err != nil || got.Token() != "folder" {
		t.Errorf("relative to the kubeconfig: credential %v, error %v", got, err)
	}
	config.Folder = ""
	var invalid *execcredential.ConfigError
	if _, err := pool.Source(config); !errors.As(err, &invalid) {
		t.Errorf("relative to nothing: error %v", err)
	}
	config.Command = "plugin"
	for _, path := range []string{".", "", current + "/../" + filepath.Base(current) + ":."} {
		t.Setenv("PATH", path)
		pool, _ := newPool(t, execcredential.Options{})
		_, err = sourceOf(t, pool, config).Get(t.Context())
		var denied *execcredential.PolicyError
		var missing *execcredential.NotFoundError
		if filepath.IsAbs(path) {
			if err != nil {
				t.Errorf("an absolute folder in PATH: error %v", err)
			}
		} else if !errors.As(err, &denied) && !errors.As(err, &missing) {
			t.Errorf("PATH=%q: error %v", path, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	folder := need(filepath.EvalSymlinks(t.TempDir()))(t)
	content := []byte("#!/bin/sh\necho '" + withStatus(`{"token":"abc"}`) + "'\n")
	path, link, other := filepath.Join(folder, "plugin"), filepath.Join(folder, "link"), filepath.Join(folder, "other")
	for _, p := range []string{path, other} {
		must(t, os.WriteFile(p, content, 0o700))
	}
	must(t, os.Symlink(path, link))
	digest := sha256.Sum256(content)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	list := func(list ...execcredential.AllowedProgram) execcredential.Policy {
		return execcredential.Policy{Type: execcredential.Allowlist, Allowlist: list}
	}
	run := func(p execcredential.Policy, command string) error {
		pool, _ := newPool(t, execcredential.Options{Policy: p})
		return errOf(sourceOf(t, pool, execcredential.Config{Command: command, Args: []string{"a"}, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never}).Get(t.Context()))
	}
	for name, c := range map[string]struct {
		policy  execcredential.Policy
		command string
		reason  string
	}{
		"zero":                 {command: path},
		"deny all":             {policy: execcredential.Policy{Type: execcredential.DenyAll}, command: path, reason: "DenyAll"},
		"path":                 {policy: list(execcredential.AllowedProgram{Command: path}), command: path},
		"link to it":           {policy: list(execcredential.AllowedProgram{Command: path}), command: link},
		"listed link":          {policy: list(execcredential.AllowedProgram{Command: link}), command: path},
		"name of a path":       {policy: list(execcredential.AllowedProgram{Command: path}), command: "plugin"},
		"listed name":          {policy: list(execcredential.AllowedProgram{Command: "plugin"}), command: path},
		"other":                {policy: list(execcredential.AllowedProgram{Command: path}), command: other, reason: "not in the allowlist"},
		"digest":               {policy: list(execcredential.AllowedProgram{Command: path, SHA256: hex.EncodeToString(digest[:])}), command: path},
		"other digest":         {policy: list(execcredential.AllowedProgram{Command: path, SHA256: strings.Repeat("0", 64)}), command: path, reason: "another digest; this file has " + hex.EncodeToString(digest[:])},
		"arguments":            {policy: list(execcredential.AllowedProgram{Command: path, Args: []string{"a"}}), command: path},
		"other arguments":      {policy: list(execcredential.AllowedProgram{Command: path, Args: []string{}}), command: path, reason: "other arguments"},
		"second entry of same": {policy: list(execcredential.AllowedProgram{Command: path, Args: []string{}}, execcredential.AllowedProgram{Command: path}), command: path},
	} {
		err := run(c.policy, c.command)
		var denied *execcredential.PolicyError
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s: error %v", name, err)
		case c.reason != "" && (!errors.As(err, &denied) || !strings.Contains(denied.Reason, c.reason)):
			t.Errorf("%s: error %v, want %q", name, err, c.reason)
		}
	}
}

// Characters that cmd.exe would take for more than an argument do not reach a batch file.
func TestBatchFiles(t *testing.T) {
	for _, path := range []string{`login.bat`, `LOGIN.BAT`, `tools.v1/login.Cmd`} {
		expect(t, execcredential.CheckBatch(path, "--for", "jane doe", `c:\users\jane`, "a=b,c;d", "ü"), path)
		for _, arg := range []string{`"`, `"&calc`, "%PATH%", "a|b", "a>b", "a<b", "^", "!x!", "a\nb", "a\rb"} {
			var denied *execcredential.PolicyError
			if err := execcredential.CheckBatch(path, "--for", arg); !errors.As(err, &denied) || !strings.Contains(err.Error(), "argument 2") {
				t.Errorf("%s %q: error %v", path, arg, err)
			}
		}
	}
	expect(t, execcredential.CheckBatch("login.exe", `"&calc`), "a program that is not a batch file")
}

func TestTrustedOwner(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	folder := need(filepath.EvalSymlinks(t.TempDir()))(t)
	safe, open := filepath.Join(folder, "safe"), filepath.Join(folder, "open")
	content := []byte("#!/bin/sh\necho '" + withStatus(`{"token":"abc"}`) + "'\n")
	for _, f := range []string{safe, open} {
		must(t, errors.Join(os.Mkdir(f, 0o700), os.WriteFile(filepath.Join(f, "plugin"), content, 0o700), os.WriteFile(filepath.Join(f, "writable"), content, 0o700),
			os.Chmod(filepath.Join(f, "writable"), 0o770), os.Symlink(filepath.Join(safe, "plugin"), filepath.Join(f, "link"))))
	}
	// A link leads over one in a folder of others; and so does one to a folder, in the middle of a path.
	for name, target := range map[string]string{"chain": filepath.Join(open, "link"), "over": "../open/../safe/link", "through": filepath.Join(open, "folder", "plugin")} {
		must(t, os.Symlink(target, filepath.Join(safe, name)))
	}
	must(t, errors.Join(os.Symlink(safe, filepath.Join(open, "folder")), os.Chmod(open, 0o777)))
	for path, want := range map[string]string{
		filepath.Join(safe, "plugin"):   "",
		filepath.Join(safe, "link"):     "",
		filepath.Join(safe, "writable"): "writable",
		filepath.Join(open, "plugin"):   `open"`,
		filepath.Join(open, "link"):     `open"`,
		filepath.Join(safe, "chain"):    `open"`,
		filepath.Join(safe, "through"):  `open"`,
		filepath.Join(safe, "over"):     "",
	} {
		pool, _ := newPool(t, execcredential.Options{Policy: execcredential.Policy{TrustedOwner: true}})
		_, err := sourceOf(t, pool, execcredential.Config{Command: path, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never}).Get(t.Context())
		var denied *execcredential.PolicyError
		if want == "" && err != nil || want != "" && (!errors.As(err, &denied) || !strings.Contains(denied.Reason, want) || !strings.Contains(denied.Reason, "others can write it")) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestBadPolicies(t *testing.T) {
	for field, policy := range map[string]execcredential.Policy{
		"policy.type":                 {Type: "Some"},
		"policy.allowlist":            {Allowlist: []execcredential.AllowedProgram{{Command: "a"}}},
		"policy.allowlist[0].command": {Type: execcredential.Allowlist, Allowlist: []execcredential.AllowedProgram{{}}},
		"policy.allowlist[1].command": {Type: execcredential.Allowlist, Allowlist: []execcredential.AllowedProgram{{Command: "a"}, {Command: "/a/../b"}}},
		"policy.allowlist[0].sha256":  {Type: execcredential.Allowlist, Allowlist: []execcredential.AllowedProgram{{Command: "a", SHA256: "zz"}}},
	} {
		var typed *execcredential.ConfigError
		if _, err := execcredential.NewPool(execcredential.Options{Policy: policy}); !errors.As(err, &typed) || typed.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
	var typed *execcredential.ConfigError
	if _, err := execcredential.NewPool(execcredential.Options{Policy: execcredential.Policy{Type: execcredential.Allowlist}}); !errors.As(err, &typed) {
		t.Errorf("an empty allowlist: error %v", err)
	}
}

// A program whose kubeconfig names the program itself is not run without end.
func TestRecursion(t *testing.T) {
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	environ := os.Environ()
	for depth := 1; ; depth++ {
		execcredential.SetEnviron(source, environ)
		_, err := source.Refresh(t.Context())
		var denied *execcredential.PolicyError
		if depth > 5 {
			if !errors.As(err, &denied) || provider.Runs() != 5 {
				t.Errorf("depth %d: error %v", depth, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
		environ = provider.Calls()[depth-1].Env
	}
}

// The author of a kubeconfig, who does not write the policy, can't make another program of one that is allowed.
func TestPolicyOfVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+withStatus(`{"token":"abc"}`)+"'\n"), 0o700))
	for name, c := range map[string]struct {
		allowed []string
		variables,
		reason string
	}{
		"any":             {variables: "REGION"},
		"loader":          {variables: "LD_PRELOAD", reason: "LD_PRELOAD"},
		"shell":           {variables: "BASH_ENV", reason: "BASH_ENV"},
		"path":            {variables: "PATH", reason: "PATH"}, // by which "#!/usr/bin/env sh" finds its shell
		"browser":         {variables: "BROWSER", reason: "BROWSER"},
		"any case":        {variables: "ld_preload", reason: "ld_preload"},
		"named":           {allowed: []string{"REGION"}, variables: "REGION"},
		"not named":       {allowed: []string{"REGION"}, variables: "HTTPS_PROXY", reason: `without the variable "HTTPS_PROXY"`},
		"none":            {allowed: []string{}, variables: "REGION", reason: `without the variable "REGION"`},
		"loader, by name": {allowed: []string{"LD_AUDIT"}, variables: "LD_AUDIT", reason: "LD_AUDIT"},
	} {
		pool, _ := newPool(t, execcredential.Options{Policy: execcredential.Policy{Type: execcredential.Allowlist, Allowlist: []execcredential.AllowedProgram{{Command: path, Env: c.allowed}}}})
		config := execcredential.Config{Command: path, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, Env: []execcredential.EnvVar{{Name: c.variables, Value: "s3cr3t"}}}
		_, err := sourceOf(t, pool, config).Get(t.Context())
		if policy := (*execcredential.PolicyError)(nil); c.reason == "" && err != nil || c.reason != "" && (!errors.As(err, &policy) || !strings.Contains(policy.Reason, c.reason) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%s: error %v, want %q", name, err, c.reason)
		}
	}
}
