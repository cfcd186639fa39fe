package execcredential

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// PolicyType selects which programs may run.
type PolicyType string

const (
	// AllowAll lets every program run. It is what an empty PolicyType means.
	AllowAll PolicyType = "AllowAll"
	// DenyAll lets none run.
	DenyAll PolicyType = "DenyAll"
	// Allowlist lets those of Policy.Allowlist run.
	Allowlist PolicyType = "Allowlist"
)

// Policy defines which programs may run. It is applied before every run. Whatever it allows, programs of the current directory never
// run. Its zero value allows all others.
type Policy struct {
	Type PolicyType
	// Allowlist is for the type Allowlist only, and must not be empty then.
	Allowlist []AllowedProgram
	// TrustedOwner refuses programs that someone else could have written: the file, the folders on the way to it, and those on the
	// way to a symbolic link to it, must belong to root or to this user, and must not be writable for group or others. A folder with
	// the sticky bit may be. It does not exist on Windows, where every program is refused.
	TrustedOwner bool
	// SecretEnv names variables of a Config whose values are secret, besides those whose names say so, like CLIENT_SECRET: they are taken
	// out of what a program wrote to standard error before it is part of an error. It is for every Type.
	SecretEnv []string
}

// AllowedProgram is a program that may run.
type AllowedProgram struct {
	// Command is a path, or a name that is looked up in PATH. A program is this one if both are the same file after symbolic links
	// are followed. Required.
	Command string
	// SHA256 is the digest of the file, in hexadecimal. Empty for any. Together with TrustedOwner only root and this user can
	// replace the file after it was looked at.
	SHA256 string
	// Args are the only arguments that it may have. Nil for any.
	Args []string
	// Env names the only variables that a config may set for it. Nil for any, but those by which a loader or an interpreter runs something
	// else, like LD_PRELOAD: no config may set these for a program of an Allowlist, or with TrustedOwner.
	Env []string
}

// Validate returns a *ConfigError for the first thing that is wrong with p, or nil.
func (p Policy) Validate() error {
	switch p.Type {
	case "", AllowAll, DenyAll:
		if p.Allowlist != nil {
			return &ConfigError{Field: "policy.allowlist", Reason: fmt.Sprintf("is set, and the type of the policy is %q; set the type to %s", p.Type, Allowlist)}
		}
		return nil
	case Allowlist:
	default:
		return &ConfigError{Field: "policy.type", Reason: fmt.Sprintf("is %q; use one of AllowAll, DenyAll, Allowlist", clip(string(p.Type)))}
	}
	if len(p.Allowlist) == 0 {
		return &ConfigError{Field: "policy.allowlist", Reason: "is empty; to run nothing, set the type to DenyAll"}
	}
	for i, allowed := range p.Allowlist {
		field := fmt.Sprintf("policy.allowlist[%d]", i)
		switch digest, err := hex.DecodeString(allowed.SHA256); {
		case allowed.Command == "":
			return &ConfigError{Field: field + ".command", Reason: "is empty"}
		case isRelativePath(allowed.Command):
			return &ConfigError{Field: field + ".command", Reason: fmt.Sprintf("%q is relative; use an absolute path, or a name in PATH", clip(allowed.Command))}
		case hasSeparator(allowed.Command) && filepath.Clean(allowed.Command) != allowed.Command:
			return &ConfigError{Field: field + ".command", Reason: fmt.Sprintf("%q is not in its shortest form, which is %q", clip(allowed.Command), clip(filepath.Clean(allowed.Command)))}
		case allowed.SHA256 != "" && (err != nil || len(digest) != sha256.Size):
			return &ConfigError{Field: field + ".sha256", Reason: "is not 64 hexadecimal digits"}
		}
	}
	return nil
}

func (p Policy) clone() Policy {
	p.Allowlist, p.SecretEnv = slices.Clone(p.Allowlist), slices.Clone(p.SecretEnv)
	for i := range p.Allowlist {
		p.Allowlist[i].Args = slices.Clone(p.Allowlist[i].Args)
		p.Allowlist[i].Env = slices.Clone(p.Allowlist[i].Env)
	}
	return p
}

// check returns what to run for the program that was found at path: the file itself, with no symbolic link on the way that could
// change, if p has a rule for it.
func (p Policy) check(command, path string, args []string, env []EnvVar) (string, error) {
	if p.Type == DenyAll {
		return "", &PolicyError{Command: command, Path: path, Reason: "the policy is DenyAll"}
	}
	if p.Type != Allowlist && !p.TrustedOwner {
		return path, nil
	}
	if reason := checkLoader(env); reason != "" {
		return "", &PolicyError{Command: command, Path: path, Reason: reason}
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &PolicyError{Command: command, Path: path, Reason: fmt.Sprintf("its symbolic links can't be followed: %v", err)}
	}
	if p.Type == Allowlist {
		if reason := p.listed(resolved, args, env); reason != "" {
			return "", &PolicyError{Command: command, Path: resolved, Reason: reason}
		}
	}
	if p.TrustedOwner {
		if err := trusted(path); err != nil {
			return "", &PolicyError{Command: command, Path: path, Reason: err.Error()}
		}
	}
	return resolved, nil
}

// listed returns why no entry allows the program, or nothing.
func (p Policy) listed(resolved string, args []string, env []EnvVar) string {
	reason := "it is not in the allowlist"
	for _, allowed := range p.Allowlist {
		path, err := exec.LookPath(allowed.Command)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil || !samePath(path, resolved) {
			continue
		}
		if allowed.Args != nil && !slices.Equal(allowed.Args, args) {
			reason = "the allowlist has it with other arguments"
			continue
		}
		if name := onlyThese(allowed.Env, env); name != "" {
			reason = fmt.Sprintf("the allowlist has it without the variable %q", clip(name))
			continue
		}
		if allowed.SHA256 == "" {
			return ""
		}
		digest, err := digestOf(resolved)
		if err != nil {
			return fmt.Sprintf("its digest is unknown: %v", err)
		}
		if strings.EqualFold(digest, allowed.SHA256) {
			return ""
		}
		reason = fmt.Sprintf("the allowlist has it with another digest; this file has %s", digest)
	}
	return reason
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
