package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	gomodule "golang.org/x/mod/module"
)

// ours is the path of the module whose version a release has.
const ours = "github.com/credence-id/credence"

// tagged returns a checkout of the commit that is checked out in source, whose programs have the version: the Go toolchain takes it from a
// tag, so that is a clone in the folder scratch with this tag. Without a version it is source itself.
func tagged(ctx context.Context, source, version, scratch string) (string, error) {
	if version == "" {
		return source, nil
	}
	if gomodule.Check(ours, version) != nil || gomodule.CanonicalVersion(version) != version {
		return "", fmt.Errorf("invalid version %q: want vMAJOR.MINOR.PATCH of %s, such as v0.1.0", version, ours)
	}
	if of, err := git(ctx, source, "rev-parse", "--quiet", "--verify", "refs/tags/"+version+"^{commit}"); err == nil {
		if head, err := git(ctx, source, "rev-parse", "HEAD"); err != nil || head != of {
			return "", fmt.Errorf("%s is the version of commit %s, and can't be that of another one: check that out, or choose another version", version, of)
		}
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	if _, err := git(ctx, scratch, "clone", "--quiet", "--no-tags", source, "checkout"); err != nil {
		return "", err
	}
	clone := filepath.Join(scratch, "checkout")
	_, err = git(ctx, clone, "-c", "tag.gpgSign=false", "tag", version)
	return clone, err
}

// git runs git in a folder, and returns what it printed.
func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = folder
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(arguments, " "), err, bytes.TrimSpace(errors.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
