// Command bench measures a running plane, and the client library and provider of exec credentials, beside their peers, and prints
// one table. In goes the folder of the programs, out come rows of ours, a peer's, and their ratio, from one run on one machine. It judges nothing else: no test passes or fails by what
// it measures, everything it talks to is on this machine, and its load is bounded in time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// settings are the flags.
type settings struct {
	bin, dir, out, only string
	round, pause        time.Duration
	rounds, secrets     int
}

// peers are what this program runs instead, when its first argument names one.
var peers = map[string]func(args []string, stdin io.Reader, stdout io.Writer) error{
	bareCommand: serveBare, noopCommand: serveNoop, cachingCommand: cacheSecrets, startCommand: startOnce,
}

// alone are the parts that need no plane. They are measured before there is one, which is never idle.
var alone = []part{{"execcredential", measureExecCredential}, {"credential", measureCredential}}

// parts are what is measured of a plane that runs, in this order: the last leave much behind that is still being removed.
var parts = []part{
	{"tokens", measureTokens}, {"discovery", measureDiscovery}, {"webhook", measureWebhook}, {"gmsa", measureGMSA},
	{"gmsa-pods", measureGMSAPods}, {"gmsa-alone", measureGMSAAlone}, {"profiles", measureProfiles}, {"pods", measurePods}, {"steady", measureSteady},
	{"reports", measureReports}, {"node", measureNode}, {"secrets", measureSecrets}, {"storage", measureStorage}, {"contexts", measureContexts}, {"drift", measureDrift},
}

type part struct {
	name    string
	measure func(context.Context, settings, plane, *table) error
}

func main() {
	controllerlog.SetLogger(logr.Discard())
	if len(os.Args) > 1 && peers[os.Args[1]] != nil {
		exitOn(peers[os.Args[1]](os.Args[2:], os.Stdin, os.Stdout))
		return
	}
	var s settings
	flag.StringVar(&s.bin, "bin", "bin", "folder of the programs that make build makes")
	flag.StringVar(&s.dir, "dir", "", "folder of a plane that runs; one is started, and removed, where it is empty")
	flag.StringVar(&s.out, "out", "", "file that the table is also written to, as Markdown")
	flag.StringVar(&s.only, "only", "", "part to measure: "+partNames()+"; all where it is empty")
	flag.DurationVar(&s.round, "round", 500*time.Millisecond, "how long each subject is measured in a round")
	flag.IntVar(&s.rounds, "rounds", 20, "how many rounds there are, every second one in reverse order")
	flag.DurationVar(&s.pause, "pause", 3*time.Second, "how long the processes are watched doing nothing, before each series of rounds")
	flag.IntVar(&s.secrets, "secrets", 10000, "how many Secrets the agent is measured with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(run(ctx, s))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func partNames() string {
	names := []string{"start"}
	for _, part := range slices.Concat(alone, parts) {
		names = append(names, part.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func run(ctx context.Context, s settings) error {
	if s.rounds < 2 || s.rounds > 100 || s.round < 100*time.Millisecond || s.round > time.Minute {
		return fmt.Errorf("-rounds must be 2 to 100 and -round 100ms to 1m, they are %d and %s", s.rounds, s.round)
	}
	if s.pause < 100*time.Millisecond || s.pause > time.Minute {
		return fmt.Errorf("-pause must be 100ms to 1m, it is %s", s.pause)
	}
	if s.secrets < 100 || s.secrets > 20000 {
		return fmt.Errorf("-secrets must be 100 to 20000, it is %d", s.secrets)
	}
	if s.only != "" && s.only != "start" && !named(alone, s.only) && !named(parts, s.only) {
		return fmt.Errorf("-only %q is not %s", s.only, partNames())
	}
	t := table{about: fmt.Sprintf("%s/%s, %d CPUs, %s, %d rounds of %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), s.rounds, s.round)}
	if err := measureAll(ctx, s, alone, plane{}, &t); err != nil {
		return err
	}
	if !named(alone, s.only) {
		p, stop, err := startPlane(ctx, s, &t)
		if err != nil {
			if len(t.rows) > 0 {
				fmt.Print(t.text())
			}
			return err
		}
		defer stop()
		if err := measureAll(ctx, s, parts, p, &t); err != nil {
			return err
		}
	}
	fmt.Print(t.text())
	if s.out == "" {
		return nil
	}
	return os.WriteFile(s.out, []byte(t.markdown()), 0o644)
}

func named(parts []part, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.name == name })
}

// measureAll measures those parts that are wanted.
func measureAll(ctx context.Context, s settings, parts []part, p plane, t *table) error {
	for _, part := range parts {
		if s.only != "" && s.only != part.name {
			continue
		}
		if err := part.measure(ctx, s, p, t); err != nil {
			fmt.Print(t.text()) // what is known by now may have taken minutes
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
	}
	return nil
}
