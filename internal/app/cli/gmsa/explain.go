package gmsa

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	answer "github.com/credence-id/credence/internal/app/cli/explain"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/wording"
)

// explainCommand is "gmsa explain": it shows which account each container of a pod runs as, and why, by the rules of the webhook.
type explainCommand struct {
	*screen.Terminal
	connection *connection.Flags

	files   []string
	offline bool
	output  string
}

func newExplain(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	e := &explainCommand{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "explain -f FILE...",
		Short: "Report which credential spec each container of a pod gets, from where, and whether it is allowed",
		Long: `Report of pods, and of the pods that workloads would make, which credential spec each
container gets, from which field, whether the service account may use it, and what the
container runtime gets: through CRI, and in the OCI specification. The rules are
those of the webhook; nothing is created.

FILE is YAML or JSON, of one or several documents; - is standard input.
GMSACredentialSpecs in the files are taken as they are there, others are read from the
cluster. The cluster reviews whether the service account may use them, for which you
need the right to create subjectaccessreviews. A fact that it does not answer, or that
--offline leaves out, stays open, and a note reports it.

Exit codes: 0 it would be admitted, as far as is known; 1 it would be refused; 2 wrong
usage, or a file that cannot be used.`,
		Example: `  credence gmsa explain -f my-app.yaml -n my-team
  credence gmsa explain -f my-app.yaml -f webapp1-credspec.yaml --offline`,
		Args:        command.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().StringArrayVarP(&e.files, "filename", "f", nil, "A file with pods or workloads, or - for standard input; may be repeated; required")
	cmd.Flags().BoolVar(&e.offline, "offline", false, "Query no cluster")
	command.Output(cmd, &e.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

func (e *explainCommand) run(cmd *cobra.Command) error {
	home, err := e.connection.Home(cmd)
	if err != nil {
		return err
	}
	subjects, facts, err := e.read(cmd, home)
	if err != nil {
		return err
	}
	e.open(facts)
	stop := func() {}
	if facts.Cluster != nil {
		stop = e.WaitingFor("the API server " + facts.Cluster.Host)
	}
	var explanations []*explain.Accounts
	refused := false
	for _, subject := range subjects {
		explanation, err := explain.WindowsAccounts(cmd.Context(), facts, subject)
		if err != nil {
			stop()
			return fmt.Errorf("explain %s: %w", subject, err)
		}
		explanations = append(explanations, explanation)
		refused = refused || explanation.Verdict == explain.Refused
	}
	stop()
	if err := answer.Print(e.Out, e.output, explanations, answer.WriteAccounts); err != nil {
		return err
	}
	if refused {
		return &command.Failure{Code: command.ExitRefused}
	}
	return nil
}

// read finds pods, and GMSACredentialSpecs, in the files.
func (e *explainCommand) read(cmd *cobra.Command, home string) ([]explain.Subject, *explain.Facts, error) {
	manifests, err := readManifests(e.Terminal, cmd, e.files)
	if err != nil {
		return nil, nil, err
	}
	facts := explain.NewFacts(nil)
	var subjects []explain.Subject
	for _, m := range manifests {
		for _, document := range m.documents {
			if len(document.Content) == 0 || document.Content[0].Kind == yaml.ScalarNode && document.Content[0].ShortTag() == "!!null" {
				continue
			}
			object, err := placedJSON(document.Content[0])
			if err != nil {
				return nil, nil, command.Usage(cmd, fmt.Sprintf("-f: %s: %v", m.file, err))
			}
			some, err := explain.SubjectsOf(object.json, home)
			if err != nil {
				return nil, nil, command.Usage(cmd, fmt.Sprintf("-f: %s: %s", m.file, wording.Printable(err.Error())))
			}
			subjects = append(subjects, some...)
			facts.AddSpecs(object.json, m.file, 0)
		}
	}
	if len(subjects) == 0 {
		return nil, nil, command.Usage(cmd, fmt.Sprintf("-f: %s: there is no object of a kind that has pods: %s", strings.Join(e.files, ", "), strings.Join(explain.KindNames(true), ", ")))
	}
	return subjects, facts, nil
}

// open connects to the cluster, if there is one to ask.
func (e *explainCommand) open(facts *explain.Facts) {
	if e.offline {
		facts.Note("no cluster was queried")
		return
	}
	cluster, err := e.connection.Open(e.ErrOut)
	if err != nil {
		facts.Note("no cluster can be queried: " + strings.TrimPrefix(err.Error(), "error: "))
		return
	}
	facts.Cluster = cluster
}
