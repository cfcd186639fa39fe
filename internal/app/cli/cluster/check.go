package cluster

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/doctor"
	"github.com/credence-id/credence/internal/membership"
)

// check is "cluster check".
type check struct {
	*screen.Terminal
	connection *connection.Flags
	folder     string
	workload   string
	output     string
}

// checked is what "cluster check" prints.
type checked struct {
	Name string `json:"name"`
	// Verdict is complete, incomplete, or unknown: nothing is missing, as far as is known.
	Verdict string `json:"verdict"`
	// Findings are what is missing, too many, or wrong otherwise.
	Findings []string `json:"findings"`
	// Unreadable are the namespaces whose identities objects on the cluster use, and that the agent may not read.
	Unreadable []string     `json:"unreadable"`
	Notes      []string     `json:"notes"`
	Seen       *metav1.Time `json:"seen,omitempty"`    // give or take some minutes
	Version    string       `json:"version,omitempty"` // of the agent
}

func newCheck(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &check{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check that a cluster which has joined has all that it needs",
		Long: `Check that a cluster which has joined has all that joining makes: its users and their
rights in each of its namespaces and in no others, and that one of them was seen within a
day, if ever. Where it joined with --from-contexts, also that its agent may read the
identities of the Secrets that objects on it need: the command impersonates the agent, and
you must be allowed to do so. With --workload-kubeconfig or --credentials, the tokens in
the other cluster, or in the folder, are checked, too: that they are of this cluster's
users and have not expired, and that the Secret that they are bound to exists.

Exit codes: 0 nothing is missing; 1 something is, or the cluster has not joined; 3 it is
not known what the agent may read, or a server could not be reached.`,
		Example:           `  credence cluster check east --workload-kubeconfig east.kubeconfig`,
		Args:              command.ExactlyOne("the name of a cluster"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		ValidArgsFunction: completeClusters(kube),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	workloadFlag(cmd, &c.workload, "The kubeconfig of the other cluster, if joining has written to it")
	cmd.Flags().StringVar(&c.folder, "credentials", "", "The folder that joining has written")
	cmd.MarkFlagsMutuallyExclusive("workload-kubeconfig", "credentials")
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

func (c *check) run(cmd *cobra.Command, name string) error {
	m, err := memberOf(cmd, name, nil)
	if err != nil {
		return err
	}
	opened, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return err
	}
	stop := c.WaitingFor("the API server " + opened.Host)
	defer stop()
	tokens, err := c.tokens(cmd.Context(), cmd.Root().DisplayName())
	if err != nil {
		return err
	}
	stored, m, err := read(cmd.Context(), opened, m)
	if err != nil {
		return failure(cmd, "read WorkloadCluster "+name, err)
	}
	rights, err := m.bound(cmd.Context(), opened)
	if err != nil {
		return failure(cmd, "list RoleBindings", err)
	}
	all := m.objects()
	if err := (objects.Writer{API: opened, DryRun: "client", Program: cmd.Root().DisplayName(), Hint: "a cluster admin of the identity cluster may"}).Plan(cmd.Context(), all); err != nil {
		return err
	}
	found := checked{Name: name, Findings: []string{}, Unreadable: []string{}, Notes: rights.notes(), Seen: stored.Status.LastSeenTime, Version: stored.Status.AgentVersion}
	for _, o := range all {
		if text := map[string]string{"created": "is missing", "configured": "is not as joining makes it"}[o.Done()]; text != "" {
			where := ""
			if o.At.Namespace != "" {
				where = " in namespace " + o.At.Namespace
			}
			found.Findings = append(found.Findings, fmt.Sprintf("%s/%s%s %s", o.Kind, o.At.Name, where, text))
		}
		if secret, ok := o.Content.(*corev1.Secret); ok && tokens != nil {
			found.Findings = append(found.Findings, c.faults(m, secret, tokens)...)
		}
	}
	for _, o := range rights.surplus() {
		found.Findings = append(found.Findings, fmt.Sprintf("%s/%s in namespace %s is too many: the WorkloadCluster does not list the namespace", o.Kind, o.At.Name, o.At.Namespace))
	}
	if away := doctor.Away(stored, c.Now()); away != "" {
		found.Findings = append(found.Findings, away)
	}
	var unknown error
	if m.fromContexts {
		var denied []string
		denied, unknown = c.unread(cmd.Context(), m)
		found.Unreadable = append(found.Unreadable, denied...)
	}
	if unknown != nil {
		found.Notes = append(found.Notes, fmt.Sprintf("whether the agent may read the identities that objects on the cluster use is not known: %v", unknown))
	}
	var failed *command.Failure
	switch {
	case len(found.Findings) > 0:
		into := "--out " + cmp.Or(c.folder, "FOLDER")
		if c.workload != "" {
			into = "--workload-kubeconfig " + c.workload
		}
		failed = &command.Failure{Code: command.ExitRefused, Hint: "a cluster admin of the identity cluster completes it with: " + cmd.Root().DisplayName() + " cluster join " + name + " " + into}
	case len(found.Unreadable) > 0:
		failed = &command.Failure{Code: command.ExitRefused, Hint: "an admin of the identity cluster lets it, in each of these namespaces, by the RoleBinding that is noted above"}
	case unknown != nil:
		failed = &command.Failure{Code: command.ExitOutage, Hint: "nothing else is missing"}
	}
	found.Verdict = "complete"
	if failed != nil {
		found.Verdict = map[int]string{command.ExitRefused: "incomplete", command.ExitOutage: "unknown"}[failed.Code]
	}
	if err := c.print(found); err != nil || failed == nil {
		return err
	}
	return failed
}

func (c *check) print(found checked) error {
	if c.output != "text" {
		return screen.Object(c.Out, c.output, found)
	}
	printNotes(c.ErrOut, found.Notes...)
	for _, finding := range found.Findings {
		fmt.Fprintln(c.Out, finding)
	}
	for _, namespace := range found.Unreadable {
		fmt.Fprintf(c.Out, "the agent may not read namespace %s, whose identities objects on the cluster use\n", namespace)
	}
	if found.Verdict != "complete" {
		return nil
	}
	seen := "never yet seen"
	if found.Seen != nil {
		seen = "last seen at " + at(found.Seen)
	}
	if found.Version != "" {
		seen += ", with an agent of version " + found.Version
	}
	_, err := fmt.Fprintf(c.Out, "cluster %s has all that it needs; %s\n", found.Name, seen)
	return err
}

// unread requests as the agent what it may not read.
func (c *check) unread(ctx context.Context, m member) ([]string, error) {
	agent, err := c.connection.OpenAs(userOf(m.agent()), c.ErrOut)
	if err != nil {
		return nil, err
	}
	return unread(ctx, agent)
}

// tokens are those of the other cluster or of the folder, by the names of files; nil: none are to be checked.
func (c *check) tokens(ctx context.Context, program string) (map[string]string, error) {
	switch {
	case c.workload != "":
		workload, err := c.connection.OpenFile(c.workload, c.ErrOut)
		if err != nil {
			return nil, err
		}
		var secret corev1.Secret
		if err := workload.Get(ctx, &secret, secretWith(nil).At); err != nil && !apierrors.IsNotFound(err) {
			return nil, connection.Request{Namespace: rights.SystemNamespace, Program: program}.ObjectFailure("read Secret "+membership.SecretName+" of the workload cluster", err)
		}
		tokens := map[string]string{}
		for name, content := range secret.Data {
			tokens[name] = string(content)
		}
		return tokens, nil
	case c.folder != "":
		tokens, err := membership.Folder(c.folder).Tokens(ctx)
		if err != nil {
			return nil, fmt.Errorf("--credentials: %w", err)
		}
		return tokens, nil
	}
	return nil, nil
}

// faults are what is wrong with the tokens. The secret has no uid if it is not stored.
func (c *check) faults(m member, secret *corev1.Secret, tokens map[string]string) []string {
	var faults []string
	for file, account := range map[string]string{"agent" + membership.Suffix: m.agent(), "webhook" + membership.Suffix: m.webhook()} {
		path := filepath.Join(c.folder, file)
		text, ok := tokens[file]
		token, err := membership.Parse(text)
		switch {
		case !ok:
			faults = append(faults, path+" is missing")
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s: %v", path, err))
		case token.Account != account:
			faults = append(faults, fmt.Sprintf("%s: a token of service account %s, not of %s", path, token.Account, account))
		case token.SecretUID != secret.UID:
			faults = append(faults, fmt.Sprintf("%s: not valid any more: it is bound to a Secret %s of another uid", path, token.Secret.Name))
		case !c.Now().Before(token.Expires):
			faults = append(faults, fmt.Sprintf("%s: expired at %s", path, token.Expires.UTC().Format(time.RFC3339)))
		}
	}
	return faults
}
