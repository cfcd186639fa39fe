package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/report"
)

// directoryRing is the ring in a folder. The program that signs with it follows what is saved there.
type directoryRing struct {
	operator keyring.Operator
	settings keys.Settings
}

func openDirectoryRing(path string, settings keys.Settings, now func() time.Time) (directoryRing, error) {
	// A folder that does not exist would be made, and a mistyped name with it.
	if _, err := os.Stat(path); err != nil {
		return directoryRing{}, directoryFailure("open the ring of keys", err)
	}
	store, err := keystore.OpenDirectory(path)
	if err != nil {
		return directoryRing{}, directoryFailure("open the ring of keys", err)
	}
	return directoryRing{settings: settings, operator: keyring.Operator{
		Store: store, Clock: timeSource(now), Generate: keys.NewPrivate,
		// The program that signs knows the relying parties of a key; a key that it has not found published has no time
		// of publication in the ring.
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: settings}, nil },
	}}, nil
}

func (r directoryRing) read(ctx context.Context) (*v1alpha1.KeyRing, error) {
	ring, _, err := r.operator.Store.Load(ctx)
	if err != nil {
		return nil, directoryFailure("read the ring of keys", err)
	}
	view := keys.View{Settings: r.settings, Now: r.operator.Clock.Now()}
	return &v1alpha1.KeyRing{
		TypeMeta: typeOf("KeyRing"),
		Status:   report.Status(report.Observation{Ring: ring, View: view, Plan: ring.Plan(view)}),
	}, nil
}

func (r directoryRing) rotate(ctx context.Context, spec v1alpha1.KeyRotationSpec, dryRun bool) (v1alpha1.KeyRotationStatus, error) {
	command := keys.Command{
		Algorithm: identity.Algorithm(spec.Algorithm), Key: identity.KeyID(spec.ActiveKey), AcceptRefusals: spec.AcceptRefusals,
		Cause: keys.Cause{By: systemUser(), Reason: spec.Reason},
	}
	do := keyring.Rotate(command)
	if spec.Now {
		do = r.operator.RotateNow(command)
	}
	outcome, err := r.operator.Do(ctx, do, dryRun)
	if err != nil {
		return v1alpha1.KeyRotationStatus{}, directoryFailure("rotate the "+spec.Algorithm+" key", err)
	}
	return report.Rotation(outcome.Before, outcome.Ring, outcome.View, command.Algorithm, spec.Now), nil
}

func (r directoryRing) revoke(ctx context.Context, spec v1alpha1.KeyRevocationSpec, dryRun bool) (v1alpha1.KeyRevocationStatus, error) {
	outcome, err := r.operator.Do(ctx, r.operator.Revoke(keys.Command{
		Key: identity.KeyID(spec.Key), AcceptRefusals: spec.AcceptRefusals, Cause: keys.Cause{By: systemUser(), Reason: spec.Reason},
	}), dryRun)
	if err != nil {
		return v1alpha1.KeyRevocationStatus{}, directoryFailure("revoke key "+spec.Key, err)
	}
	return report.Revocation(outcome.Before, outcome.Ring, outcome.View, identity.KeyID(spec.Key)), nil
}

// systemUser names who runs the program, as the operating system knows them.
func systemUser() string {
	if current, err := user.Current(); err == nil && current.Username != "" {
		return current.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

// directoryFailure words an error of the folder, or a refusal of the ring in it.
func directoryFailure(doing string, err error) *command.Failure {
	failed := &command.Failure{Line: fmt.Sprintf("error: %s: %v", doing, err), Code: command.ExitUsage, Err: err}
	_, refused := errors.AsType[*keys.Refused](err)
	switch {
	case refused:
		failed.Code = command.ExitRefused
	case errors.Is(err, keyring.ErrUnknownOutcome):
		failed.Code, failed.Hint = command.ExitOutage, "look at the keys before you try again"
	case errors.Is(err, keystore.ErrConflict), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		failed.Code, failed.Hint = command.ExitOutage, "others change the ring at the same time: look at the keys, and try again"
	case errors.Is(err, keystore.ErrNotFound), errors.Is(err, os.ErrNotExist):
		failed.Hint = "name the folder that credence-server signer was given as --keys-dir"
	case errors.Is(err, os.ErrPermission):
		failed.Hint = "run this as the user that the program with these keys runs as"
	}
	return failed
}

// timeSource is a clock.PassiveClock of a function that returns the time.
type timeSource func() time.Time

// Now implements clock.PassiveClock.
func (t timeSource) Now() time.Time { return t() }

// Since implements clock.PassiveClock.
func (t timeSource) Since(past time.Time) time.Duration { return t().Sub(past) }

// initialize lets the ring be used by the one who knows more of its past, and makes one where none is stored.
func (r directoryRing) initialize(ctx context.Context, reason string, dryRun bool) (made bool, err error) {
	now := r.operator.Clock.Now()
	ring, version, err := r.operator.Store.Load(ctx)
	if made = errors.Is(err, keystore.ErrNotFound); made {
		ring, err = keys.Bootstrap(r.operator.Generate, now)
	}
	if err != nil || dryRun {
		return made, err
	}
	ring.Resumed = &keys.Resuming{At: now.UTC().Truncate(time.Second), Cause: keys.Cause{By: systemUser(), Reason: reason}}
	return made, r.operator.Store.Save(ctx, ring, version)
}
