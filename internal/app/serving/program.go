package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/credence-id/credence/internal/version"
)

// exitUsage is the exit code of flags and arguments that can't be used: what starts servers need not try again.
const exitUsage = 2

// UsageError is an error in flags or arguments.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes an error one of flags or arguments; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// Main runs the program of a command tree until it is signaled to end, and ends the process.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, root)
	stop()
	os.Exit(code)
}

// CollectRarely has the garbage of a server of requests collected when its heap has grown fourfold: the heap is a few megabytes, so it would
// be collected many times a second under load. GOGC, and a limit of memory (GOMEMLIMIT), hold all the same.
func CollectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
}

// RunE is how the command of a server runs it: with the config that the flags have filled in, whose log is the command's standard error, until
// the command's context is done.
func RunE[Config any](config *Config, log **slog.Logger, run func(context.Context, Config) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		*log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
		return run(command.Context(), *config)
	}
}

// Wait waits for the parts of a server. That its context was done is not an error: it has stopped, which it logs.
func Wait(group *errgroup.Group, log *slog.Logger, stopped string) error {
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info(stopped)
	return nil
}

// run returns the exit code of the program. Every command has --version.
func run(ctx context.Context, root *cobra.Command) int {
	complete(root)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(root.ErrOrStderr(), "%s: %v\n", root.Name(), err)
	if _, usage := errors.AsType[*UsageError](err); !usage {
		return 1
	}
	fmt.Fprintf(root.ErrOrStderr(), "hint: see %s --help\n", ran.CommandPath())
	return exitUsage
}

func complete(command *cobra.Command) {
	command.SilenceErrors, command.SilenceUsage = true, true
	command.Version = version.Read().String()
	command.SetVersionTemplate("{{.Root.Name}} {{.Version}}\n")
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	check := command.Args
	if check == nil {
		check = cobra.ArbitraryArgs
		if command.HasSubCommands() {
			command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
			check = func(command *cobra.Command, args []string) error {
				if len(args) > 0 {
					return fmt.Errorf("unknown command %q for %q", args[0], command.CommandPath())
				}
				return nil
			}
		}
	}
	command.Args = func(command *cobra.Command, args []string) error { return Usage(check(command, args)) }
	for _, sub := range command.Commands() {
		complete(sub)
	}
}
