//go:build unix

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/app/up/progress"
)

func downCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop what credence up runs on this machine",
		Long:  "Stops every process of an installation in order. Its state stays in DIR for the next credence up.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			dir, err := home.Resolve(path)
			if err != nil {
				return err
			}
			return down(cmd.Context(), dir, streams)
		},
	}
	command.Flags().StringVar(&path, "dir", defaultDir, "directory of the installation")
	return command
}

func down(ctx context.Context, dir home.Dir, streams genericiooptions.IOStreams) error {
	if ctx == nil {
		ctx = context.Background()
	}
	first, _, release := interrupts(ctx)
	defer release()
	pid, held, err := dir.Holder()
	if err != nil {
		return err
	}
	if !held {
		return clearLeftovers(first, dir, streams.Out, fmt.Sprintf("Nothing runs in %s.", dir))
	}
	sink, closeSink := display(streams, time.Now)
	defer closeSink()
	tracker := progress.NewTracker(sink, time.Now)
	if err := stopSupervisor(first, dir, pid, tracker); err != nil {
		return err
	}
	return clearLeftovers(first, dir, streams.Out, fmt.Sprintf("Stopped everything in %s; its state stays for the next credence up.", dir))
}

// stopLimit is how long a supervisor may take: each component's grace, one after the other, and some more.
const stopLimit = 4 * stopGrace

// stopSupervisor signals the process that holds the installation to stop, and kills it if that takes too long.
func stopSupervisor(ctx context.Context, dir home.Dir, pid int, tracker *progress.Tracker) error {
	if err := checkSupervisor(dir, pid); err != nil {
		return err
	}
	end := tracker.Begin("supervisor", fmt.Sprintf("stopping (pid %d)", pid))
	running := componentNames(dir) // before the first of them has stopped
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the process %d that runs %s: %w", pid, dir, err)
	}
	stopped := func(context.Context) error {
		alive := process.Alive(pid) // before the names, which don't change after its end
		now := componentNames(dir)
		for _, name := range running {
			if !slices.Contains(now, name) {
				tracker.Note("%s has stopped", name)
			}
		}
		running = now
		if alive {
			return errors.New("it still runs")
		}
		return nil
	}
	if err := poll(ctx, stopLimit, stopped); err != nil {
		if ctx.Err() != nil {
			return err
		}
		tracker.Note("the supervisor (pid %d) does not stop and is killed", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		if err := poll(ctx, stopLimit, stopped); err != nil {
			return fmt.Errorf("kill the process %d that runs %s: %w", pid, dir, err)
		}
	}
	end("stopped")
	return nil
}

// checkSupervisor keeps a process id that is not known, or that is no longer the supervisor's, from being signalled.
func checkSupervisor(dir home.Dir, pid int) error {
	if pid == 0 {
		return fmt.Errorf("%s is being taken by a credence up that has just started: try again", dir)
	}
	if r, ok := process.Describe(pid); ok && !slices.Contains(r.Arguments, "up") {
		return fmt.Errorf("%s is in use by %s, which is not credence up: end it yourself", dir, r)
	}
	return nil
}

func componentNames(dir home.Dir) []string {
	endpoints, _, err := dir.LoadEndpoints()
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range endpoints.Components {
		names = append(names, c.Name)
	}
	return names
}

// clearLeftovers ends what a killed supervisor left, writes into endpoints.json that nothing runs, and prints what was done.
func clearLeftovers(ctx context.Context, dir home.Dir, out io.Writer, otherwise string) error {
	left, err := process.Leftovers(string(dir), programNames())
	if err != nil {
		return err
	}
	if err := process.End(ctx, left, leftoverGrace); err != nil {
		return err
	}
	if err := clearNode(ctx, dir); err != nil {
		return err
	}
	if err := forgetProcesses(dir); err != nil {
		return err
	}
	for _, each := range left {
		otherwise = fmt.Sprintf("Stopped what a killed credence up left in %s.", dir)
		if _, err := fmt.Fprintf(out, "Ended %s.\n", each); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, otherwise)
	return err
}

func forgetProcesses(dir home.Dir) error {
	endpoints, found, err := dir.LoadEndpoints()
	if err != nil || !found || endpoints.Supervisor == nil && len(endpoints.Components) == 0 {
		return err
	}
	endpoints.Supervisor, endpoints.Node, endpoints.Guard, endpoints.Components = nil, "", false, []home.Component{}
	// An up that has just started writes its own.
	if _, held, err := dir.Holder(); err != nil || held {
		return err
	}
	return dir.SaveEndpoints(endpoints)
}
