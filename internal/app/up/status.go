//go:build unix

package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/identity"
)

// statusLimit bounds all requests of status.
const statusLimit = 15 * time.Second

// outputs are the values of status -o.
var outputs = []string{"text", "json", "yaml"}

// report is what status -o json prints.
type report struct {
	Healthy bool            `json:"healthy"`
	Dir     home.Dir        `json:"dir"`
	Issuer  identity.Issuer `json:"issuer,omitempty"`
	Parts   []part          `json:"parts"`
}

// part is the supervisor, a component, or a connection between them.
type part struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	PID     int    `json:"pid,omitempty"`
	// Detail is what is wrong, or where a healthy part is.
	Detail  string `json:"detail"`
	LogFile string `json:"logFile,omitempty"`
}

func statusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var path, output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show whether every part that credence up runs is healthy, and where it is",
		Long: `List the parts that credence up runs, with the number of each process, whether it is ready, and its address, or what
is wrong and its log file.

Exit codes: 0 every process runs and is ready, the cluster serves Credence's API, and discovery answers for the issuer;
1 something is not healthy, or nothing was started; 2 wrong usage.`,
		Example: `  credence status
  credence status --dir /tmp/other -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			if !slices.Contains(outputs, output) {
				return usageError{fmt.Errorf("--output is %q, allowed are %s", output, strings.Join(outputs, ", "))}
			}
			dir, err := home.Resolve(path)
			if err != nil {
				return err
			}
			return status(cmd.Context(), dir, output, streams.Out)
		},
	}
	command.Flags().StringVar(&path, "dir", defaultDir, "directory of the installation")
	command.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return command
}

func status(ctx context.Context, dir home.Dir, output string, out io.Writer) error {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	examined, err := examine(ctx, dir)
	if err != nil {
		return err
	}
	if err := examined.print(out, output); err != nil {
		return err
	}
	return examined.verdict()
}

func (r report) print(out io.Writer, output string) error {
	switch output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	case "yaml":
		text, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("print as YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	return r.write(out)
}

func (r report) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "PART\tHEALTHY\tPID\tDETAIL")
	for _, p := range r.Parts {
		healthy, pid := "yes", "-"
		if !p.Healthy {
			healthy = "NO"
		}
		if p.PID != 0 {
			pid = fmt.Sprint(p.PID)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, healthy, pid, p.Detail)
	}
	return table.Flush()
}

func (r report) verdict() error {
	if r.Healthy {
		return nil
	}
	var bad []string
	for _, p := range r.Parts {
		if !p.Healthy {
			bad = append(bad, p.Name)
		}
	}
	return fmt.Errorf("%w in %s: %s", errUnhealthy, r.Dir, strings.Join(bad, ", "))
}

var errUnhealthy = errors.New("not everything is healthy")

// examine checks every part.
func examine(ctx context.Context, dir home.Dir) (report, error) {
	config, found, err := dir.LoadConfig()
	if err != nil {
		return report{}, err
	}
	if !found {
		return report{}, fmt.Errorf("nothing was set up in %s: start it with credence up", dir)
	}
	endpoints, _, err := dir.LoadEndpoints()
	if err != nil {
		return report{}, err
	}
	pid, held, err := dir.Holder()
	if err != nil {
		return report{}, err
	}
	if !held && len(endpoints.Components) == 0 {
		return report{}, fmt.Errorf("nothing runs in %s: start it with credence up", dir)
	}
	i := installation{dir: dir, config: config}
	parts := []part{supervisorPart(dir, pid, held)}
	client, err := i.client()
	if err != nil {
		return report{}, err
	}
	parts = append(parts, askAll(i.questions(ctx, client, endpoints))...)
	healthy := true
	for _, p := range parts {
		healthy = healthy && p.Healthy
	}
	return report{Healthy: healthy, Dir: dir, Issuer: config.Issuer, Parts: parts}, nil
}

func (i installation) questions(ctx context.Context, client *http.Client, endpoints home.Endpoints) []func() part {
	var all []func() part
	for _, c := range components {
		all = append(all, func() part { return i.componentPart(ctx, client, c, endpoints) })
	}
	all = append(all, i.nodeQuestions(ctx, endpoints)...)
	return append(all,
		func() part { return i.aggregationPart(ctx) },
		func() part { return i.issuerPart(ctx, client) })
}

// askAll checks all parts at the same time, as one that hangs answers late, and keeps the order.
func askAll(questions []func() part) []part {
	answers := make([]part, len(questions))
	var asking sync.WaitGroup
	for n, question := range questions {
		asking.Go(func() { answers[n] = question() })
	}
	asking.Wait()
	return answers
}

func (i installation) client() (*http.Client, error) {
	authority, err := os.ReadFile(i.dir.CAFile())
	if err != nil {
		return nil, fmt.Errorf("credence up has not come far enough in %s to be checked: %w", i.dir, err)
	}
	return webClient(authority)
}

func supervisorPart(dir home.Dir, pid int, held bool) part {
	p := part{Name: "up", Healthy: held, PID: pid, Detail: "supervises the others", LogFile: dir.Log("up")}
	if !held {
		p.Detail = "was killed: run credence up again"
	}
	return p
}

func (i installation) componentPart(ctx context.Context, client *http.Client, c component, endpoints home.Endpoints) part {
	p := part{Name: c.name, LogFile: i.dir.Log(c.name)}
	running, found := endpoints.Component(c.name)
	if !found || !process.Alive(running.PID) {
		p.Detail = "does not run, log file " + p.LogFile
		return p
	}
	p.PID = running.PID
	if err := ask(ctx, client, i.readyURL(c)); err != nil {
		p.Detail = fmt.Sprintf("%v, log file %s", err, p.LogFile)
		return p
	}
	p.Healthy, p.Detail = true, "ready at "+i.readyURL(c)
	return p
}

func (i installation) aggregationPart(ctx context.Context) part {
	p := part{Name: "aggregation"}
	admin, err := cluster.New(i.dir.Kubeconfig())
	if err == nil {
		err = admin.Available(ctx)
	}
	if err != nil {
		p.Detail = err.Error()
		return p
	}
	p.Healthy, p.Detail = true, "the cluster serves authentication.gardener.cloud and identity.credence.dev"
	return p
}

func (i installation) issuerPart(ctx context.Context, client *http.Client) part {
	p := part{Name: "issuer"}
	body, err := fetch(ctx, client, i.config.Issuer.ConfigurationURL())
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err == nil {
		err = json.Unmarshal(body, &document)
	}
	switch {
	case err != nil:
		p.Detail = err.Error()
	case document.Issuer != string(i.config.Issuer):
		p.Detail = fmt.Sprintf("%s is of issuer %q, expected is %q", i.config.Issuer.ConfigurationURL(), document.Issuer, i.config.Issuer)
	default:
		p.Healthy, p.Detail = true, document.Issuer
	}
	return p
}

// usageError is an error of the command line: its exit code distinguishes it from a refusal.
type usageError struct{ error }

// ExitCode is called by the program that runs the command.
func (usageError) ExitCode() int { return 2 }

func (e usageError) Unwrap() error { return e.error }
